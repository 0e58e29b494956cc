"""`run`: serve until stopped. Progress and a summary on a terminal, log lines elsewhere."""

from __future__ import annotations

import asyncio
import hashlib
import signal
from typing import TYPE_CHECKING

import click
import msgspec

from observant_host.cli.limits import raise_open_files
from observant_host.cli.options import command, config_option, pass_screen
from observant_host.cli.session import Session
from observant_host.telemetry.vocabulary import ConfigLoaded, HostLifecycle
from observant_host.timing.clock import SystemClock
from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.config import HostConfig
    from observant_host.config_files import Loaded
    from observant_host.host import Host


@command(
    "run",
    examples=(
        ("run", "The configuration in your user folder."),
        ("run --config observant-host.toml", "This one."),
        ("run --listen 127.0.0.1:9000", "Health and metrics on another port."),
    ),
)
@click.option("--listen", help="Address for health and metrics, instead of [service] listen.")
@config_option
@pass_screen
def run(screen: Screen, *, listen: str | None, config: Path | None) -> int:
    """Start all configured servers and serve until Ctrl-C or SIGTERM.

    The first signal refuses new calls and waits for the open ones; the second ends at once.
    """
    from observant_host.host import Host

    flags = {} if listen is None else {"service.listen": listen}
    session = Session(screen, config, flags=flags)
    settings = spoken(session.config, session, screen)
    host = Host(
        config=settings,
        state_dir=session.state_dir,
        record=settings.telemetry.record,
        secrets=session.loaded.secrets,
        configure_sdk=True,
        child_nofile=raise_open_files(),
    )
    screen.detail(f"configuration: {session.loaded.path}; state folder: {session.state_dir}")
    asyncio.run(
        serve_until_stopped(
            host, screen, state_dir=session.state_dir, loaded=config_loaded(session.loaded)
        )
    )
    return 0


def config_loaded(loaded: Loaded) -> ConfigLoaded:
    """The fact that this configuration is in force; its hash is over masked values."""
    lines = "\n".join(
        f"{'.'.join(path)}={entry.value!r}" for path, entry in loaded.assembled.entries.items()
    )
    return ConfigLoaded(
        hash=hashlib.sha256(lines.encode()).hexdigest()[:16],
        successful=True,
        problems=sum(server.problem is not None for server in loaded.config.servers),
        detail=str(loaded.path),
    )


def spoken(config: HostConfig, session: Session, screen: Screen) -> HostConfig:
    """`config` with logs for a person, where a person watches and nobody asked for another form.

    Without -v a terminal shows progress and changes instead of log lines, but for errors.
    """
    changes: dict[str, str] = {}
    if screen.live and session.is_default("telemetry", "log_format"):
        changes["log_format"] = "console"
    if session.is_default("telemetry", "log_level"):
        levels = {-1: "warning", 0: "error" if screen.live else "info", 1: "info"}
        changes["log_level"] = levels.get(screen.verbosity, "debug")
    return msgspec.structs.replace(
        config, telemetry=msgspec.structs.replace(config.telemetry, **changes)
    )


async def serve_until_stopped(
    host: Host,
    screen: Screen,
    *,
    state_dir: Path,
    loaded: ConfigLoaded | None = None,
    published: Callable[[dict[str, str]], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; a second one cuts the draining short.

    `published` is called with the addresses once start-up is over, instead of a summary.
    """
    from observant_host.cli.progress import Progress
    from observant_host.service.app import serve

    stop, hurry = stopping(screen)
    progress = Progress(screen, lambda: host.servers)
    addresses: dict[str, str] = {}

    def listening(at: dict[str, str]) -> None:
        addresses.update(at)
        detail = ", ".join(f"{what} {where}" for what, where in at.items())
        host.telemetry.count(HostLifecycle(what="listening", detail=detail))
        if loaded is not None:
            host.telemetry.count(loaded)
        if screen.live:
            progress.start()

    def tell() -> None:
        if published is None:
            summary(screen, host, addresses)
        else:
            published(addresses)

    def started() -> None:
        if screen.live:
            progress.settled(tell)
        else:
            tell()

    try:
        await serve(
            host,
            stop,
            clock=SystemClock(),
            state_dir=state_dir,
            hurry=hurry,
            listening=listening,
            published=started,
        )
    finally:
        progress.stop()
        await progress.wait()


def stopping(screen: Screen) -> tuple[Signal, Signal]:
    """(stop, hurry): set by the first and the second SIGINT or SIGTERM."""
    stop, hurry = Signal(), Signal()

    def end() -> None:
        if stop.is_set():
            hurry.set()
        else:
            screen.say_live("stopping: open calls may end; once more ends at once")
            stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    return stop, hurry


def metrics_url(addresses: Mapping[str, str]) -> str:
    """Where a browser or Prometheus finds the metrics."""
    return f"{addresses.get('metrics', addresses['admin'])}/metrics"


def summary(screen: Screen, host: Host, addresses: Mapping[str, str]) -> None:
    """What serves now, for somebody who watches."""
    views = host.servers.values()
    ready = sum(view.state in ("ready", "degraded") for view in views)
    screen.say_live(
        f"serving {len(host.catalogue.tools)} tools of {ready} servers (of {len(views)} configured)"
    )
    screen.say_live(f"metrics: {metrics_url(addresses)}")
    screen.say_live("in another terminal: observant-host status; here Ctrl-C stops")
