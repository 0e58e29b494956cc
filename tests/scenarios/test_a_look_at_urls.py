"""What a person's own look finds behind URLs: one round, nothing served, lines to write."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from observant_host import HttpServer
from observant_host.config import HostConfig
from observant_host.host import Examiner
from observant_host.supervision.declared import declare
from tests.scenarios.http import add_url, asked
from tests.support.hosts import QUICK, quick_host
from tests.support.peers import received
from tests.support.serving import serving

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.config import ServerConfig


def behind(name: str, url: str, **launch: Any) -> ServerConfig:
    return declare(name, HttpServer(url, **launch), allow_legacy=False, keys=QUICK)


async def test_each_kind_of_server_is_recognised_and_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with (
        serving() as modern,
        serving(era="legacy", initialize="version:2025-03-26", log=log) as old,
        serving(old_sse=True, era="legacy") as sse,
        serving(token="right") as locked,
        Examiner(HostConfig()) as examiner,
    ):
        new, before, oldest, closed = await asyncio.gather(
            examiner.examine(behind("modern", modern.url)),
            examiner.examine(behind("old", old.url)),
            examiner.examine(behind("sse", sse.url)),
            examiner.examine(behind("locked", locked.url)),
        )
    assert (new.view.era, new.suggestion) == ("modern", None)
    assert before.legacy_revision == "2025-03-26"
    assert before.suggestion is not None
    assert before.suggestion.keys["allow_legacy"] == ["2025-03-26"]
    assert oldest.view.transport == "sse"
    assert oldest.suggestion is not None
    assert oldest.suggestion.keys["allow_legacy"] == ["2025-11-25", "2024-11-05"]
    assert (closed.view.cause, closed.view.reason) == ("auth", "auth_required")
    assert len(received(log, "initialize")) == 1
    assert asked(log)[-1]["verb"] == "DELETE"


async def test_a_url_that_cannot_be_used_is_a_matter_of_the_configuration(tmp_path: Path) -> None:
    bad = behind("bad", "https://127.0.0.1:1/mcp", ca_bundle=str(tmp_path / "none.pem"))
    async with Examiner(HostConfig()) as examiner:
        found = await examiner.examine(bad)
    assert (found.view.cause, found.view.reason) == ("config", "config_invalid")
    assert "none.pem" in found.sentence


async def test_a_host_asks_nothing_of_a_url_that_cannot_be_used(tmp_path: Path) -> None:
    host, _ = quick_host()
    add_url(host, "bad", "https://127.0.0.1:1/mcp", ca_bundle=str(tmp_path / "none.pem"))
    async with host:
        view = host.servers["bad"]
        assert (view.state, view.cause, view.reason) == ("unavailable", "config", "config_invalid")
        assert "none.pem" in view.detail
        assert (await host.probe("bad")).reason == "config_invalid"
