"""`stdio`: the catalogue as an MCP server on stdin and stdout, for desktop clients."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from observant_host.cli.collecting import set_aside
from observant_host.cli.limits import raise_open_files
from observant_host.cli.options import command, config_option, pass_screen
from observant_host.cli.session import Session, hushed
from observant_host.timing.clock import SystemClock
from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.host import Host


@command(
    "stdio",
    examples=(
        ("stdio", "What a desktop client starts: it speaks MCP with it."),
        ("stdio --config observant-host.toml", "With this configuration."),
    ),
)
@config_option
@pass_screen
def stdio(screen: Screen, *, config: Path | None) -> int:
    """Serve one MCP client on stdin and stdout, until stdin ends.

    Where a host runs with this state folder, the client is joined to it; else one is started, which
    ends with the client. stdout carries only MCP.
    """
    session = Session(screen, config)
    asyncio.run(_serve(session, screen))
    return 0


async def _serve(session: Session, screen: Screen) -> None:
    from observant_host.service.mcp.stdio import Stdio

    stop, hurry = _stopping()
    served = Stdio(
        lambda: _host(session, screen),
        state_dir=session.state_dir,
        max_bytes=session.config.host.max_message_bytes,
        clock=SystemClock(),
        say=screen.detail,
    )
    set_aside()
    await served.run(stop, hurry)


def _host(session: Session, screen: Screen) -> Host:
    from observant_host.host import Host

    settings = hushed(session.config, screen)
    host = Host(
        config=settings,
        state_dir=session.state_dir,
        record=settings.telemetry.record,
        secrets=session.loaded.secrets,
        configure_sdk=True,
        child_nofile=raise_open_files(),
        relay_input=settings.service.relay_input,
    )
    host.reload_from(session.read_again, now=session.loaded)
    return host


def _stopping() -> tuple[Signal, Signal]:
    """(stop, hurry): set by the first and the second SIGINT or SIGTERM."""
    stop, hurry = Signal(), Signal()

    def end() -> None:
        (hurry if stop.is_set() else stop).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    return stop, hurry
