"""Input asked for by one host and answered at another."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import secrets
from typing import TYPE_CHECKING, Any

from observant_host.config import ServiceSettings
from tests.service.mcp.asking import (
    ACCEPTED,
    FORM,
    REFUSED,
    WHO,
    build,
    call,
    first_state,
)
from tests.service.mcp.stage import Stage, staged
from tests.support.hosts import PATIENCE_S
from tests.support.processes import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@contextlib.asynccontextmanager
async def replicas(tmp_path: Path, *, keys: bool = True) -> AsyncIterator[tuple[Stage, Stage]]:
    path = tmp_path / "key"
    path.write_text(base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
    shared = ServiceSettings(
        listen="127.0.0.1:0", drain_timeout_s=5, state_key_file=str(path) if keys else None
    )
    async with contextlib.AsyncExitStack() as stack:
        stages = []
        for name in ("a", "b"):
            folder = tmp_path / name
            folder.mkdir()
            stages.append(await stack.enter_async_context(staged(build(folder, shared), folder)))
        yield stages[0], stages[1]


async def test_another_replica_with_the_same_key_serves_the_retry(tmp_path: Path) -> None:
    arguments = {"state": "theirs", "requests": WHO}
    async with replicas(tmp_path) as (one, other):
        state = await first_state(one, arguments)
        carried: dict[str, Any] = {"inputResponses": {"who": ACCEPTED}, "requestState": state}
        answer = await call(other, "dialogue", arguments, **carried)
        assert json.loads(answer.text)["requestState"] == "theirs"
        waiting = {"method": "elicitation/create", "params": FORM}
        parked = await call(one, "request", waiting)
        (key,) = parked.result["inputRequests"]
        carried = {
            "inputResponses": {key: ACCEPTED},
            "requestState": parked.result["requestState"],
        }
        elsewhere = await call(other, "request", waiting, **carried)
        assert elsewhere.result["isError"] is True
        assert "another instance" in elsewhere.text
        assert "may have been executed" in elsewhere.text
        assert json.loads((await call(one, "request", waiting, **carried)).text)["result"]


async def test_a_replica_with_another_key_refuses_it(tmp_path: Path) -> None:
    async with replicas(tmp_path, keys=False) as (one, other):
        state = await first_state(one, {"state": "s"})
        answer = await call(other, "dialogue", {"state": "s"}, requestState=state)
        assert answer.error["code"] == REFUSED
        parked = await call(one, "request", {"method": "elicitation/create", "params": FORM})
        assert "inputRequests" in parked.result
        async with asyncio.timeout(PATIENCE_S):  # a host that ends waits for nobody who is away
            one.running.stop.set()
            await eventually(lambda: not one.host.open_calls)
