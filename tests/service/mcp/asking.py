"""An agent before real servers that ask for input, over real sockets."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from observant_host.config import ServiceSettings
from tests.service.mcp.stage import Stage, heard, make_host, staged
from tests.support.agent import KEY
from tests.support.hosts import add

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.agent import Answer


ALL: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
WHO = {"who": {"method": "elicitation/create", "params": FORM}}
THINK = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 5,
}
ACCEPTED = {"action": "accept", "content": {"name": "Ann"}}
SAMPLED = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}
ROOTS = {"roots": [{"uri": "file:///home/ann"}]}
REFUSED = -32602


def can(capabilities: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {f"{KEY}clientCapabilities": capabilities, **meta}


async def call(
    agent: Stage,
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    able: dict[str, Any] = ALL,
    method: str = "tools/call",
    meta: dict[str, Any] | None = None,
    **again: Any,
) -> Answer:
    params: dict[str, Any] = {"name": name, "arguments": arguments or {}, **again}
    return await agent.ask(method, params, meta=can(able, **(meta or {})))


def build(folder: Path, settings: ServiceSettings | None = None) -> Any:
    local = settings or ServiceSettings(listen="127.0.0.1:0", drain_timeout_s=5)
    host = make_host(folder, local, relay_input=True)
    log = {"log": str(folder / "new.log")}
    asking = {"prompts": "ask", "resources": "file:///ask", "ttl": 60000}
    add(host, "new", {"tools": "dialogue,ask,ask_forever,state,echo", **asking, **log})
    options = {"era": "legacy", "tools": "request,connect,mute", "log": str(folder / "old.log")}
    add(host, "old", options, allow_legacy=True)
    return host


@contextlib.asynccontextmanager
async def an_agent(folder: Path) -> AsyncIterator[Stage]:
    async with staged(build(folder), folder) as stage:
        stage.folder = folder  # type: ignore[attr-defined]
        yield stage


def sent_south(agent: Stage, server: str = "new") -> int:
    folder: Path = agent.folder  # type: ignore[attr-defined]
    messages = [line["msg"] for line in heard(folder / f"{server}.log")]
    return sum(one.get("method") == "tools/call" for one in messages)


async def first_state(agent: Stage, arguments: dict[str, Any]) -> str:
    answer = await call(agent, "dialogue", arguments)
    state: str = answer.result["requestState"]
    return state
