"""A whole host with real child processes, small timeouts, and everything it told, captured."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from observant_host import Host, StdioServer
from observant_host.telemetry import setup
from observant_host.telemetry.vocabulary import EraDecide
from tests.support.peers import scripted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from observant_host.supervision.peer_state import ServerView
    from observant_host.telemetry.facade import Finished
    from observant_host.telemetry.vocabulary import Fact

F = TypeVar("F", bound="Fact")

PATIENCE_S = 30.0
"""How long a test waits for what must come: only a failing test ever waits it out."""

QUICK: dict[str, Any] = {
    "probe_timeout_s": 10.0,
    "legacy_probe_timeout_ms": 5000,
    "restart_initial_s": 0.02,
    "restart_max_s": 0.2,
    "reprobe_max_s": 0.2,
    "shutdown_timeout_s": 1.0,
}


NEVER_AGAIN: dict[str, Any] = {
    "restart_initial_s": 600.0,
    "restart_max_s": 600.0,
    "reprobe_max_s": 600.0,
}
"""Left alone after its first death, or its first round without an era, until a person acts."""


def quick_host(**keys: Any) -> tuple[Host, list[Finished]]:
    """A host that keeps nothing, and the list of what it tells."""
    telemetry, told = setup.capturing()
    return Host(**{"telemetry": telemetry, "startup_deadline_s": PATIENCE_S, **keys}), told


def add(host: Host, name: str, options: dict[str, Any] | None = None, **keys: Any) -> None:
    """Add a scripted server; `options` are the script's, `keys` the host's for it."""
    host.add_server(name, StdioServer(scripted(**(options or {}))), **{**QUICK, **keys})


def add_late(host: Host, name: str, there: Path, options: dict[str, Any]) -> None:
    """Add a scripted server that reads nothing until the file `there` is."""
    wait = 'until [ -e "$0" ]; do sleep 0.05; done; exec "$@"'
    launch = StdioServer(("/bin/sh", "-c", wait, str(there), *scripted(**options)))
    host.add_server(name, launch, **QUICK)


async def reach(host: Host, name: str, *states: str) -> ServerView:
    """Wait, bounded, until the server is in one of these states and the catalogue shows it."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await host.wait_for(name, *states)
    except TimeoutError:
        view = host.servers[name]
        raise AssertionError(f"{name} is {view.state} ({view.detail}), wanted {states}") from None


async def until(host: Host, name: str, condition: Callable[[ServerView], bool]) -> ServerView:
    """Wait, bounded, until the server's view fulfils the condition."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition(host.servers[name]):
            changed = host.core.fleet.get(name).record.changed  # type: ignore[union-attr]
            changed.clear()
            await changed.wait()
    return host.servers[name]


def facts(told: list[Finished], kind: type[F]) -> list[F]:
    """All facts of one kind, in the order they were told."""
    return [one.fact for one in told if type(one.fact) is kind]


def decided(told: list[Finished]) -> list[EraDecide]:
    """What was decided about eras, in order. A server without one is asked again and again, so the
    end of a host may cut a round short: that one decides nothing, and no log or record has it."""
    return [one for one in facts(told, EraDecide) if one.reason]
