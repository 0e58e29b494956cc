"""`run`: serve until stopped. Progress and a summary on a terminal, log lines elsewhere."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Final

import click
import msgspec

from observant_host.cli.black_box import black_box, dumping
from observant_host.cli.collecting import set_aside
from observant_host.cli.limits import raise_open_files
from observant_host.cli.options import command, config_option, pass_screen
from observant_host.cli.session import Session
from observant_host.errors import ConfigError
from observant_host.telemetry.vocabulary import ConfigLoaded, HostLifecycle
from observant_host.timing.clock import SystemClock
from observant_host.timing.tasks import OwnerTask, Signal, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.config import HostConfig
    from observant_host.config_files import Loaded
    from observant_host.errors import HostError
    from observant_host.host import Host

DRAIN_LOOK_S: Final = 1.0
"""Between two looks at the calls that are still open: a person reads no faster."""


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

    The first signal refuses new calls and waits for the open ones; the second ends at once. SIGHUP,
    `reload`, or a change of the file given by --config applies what changed in the configuration.
    SIGUSR1 writes the last decisions to a file in the state folder.
    """
    from observant_host.host import Host

    flags = {} if listen is None else {"service.listen": listen}
    session = Session(screen, config, flags=flags)
    settings = spoken(session.loaded, screen)
    host = Host(
        config=settings,
        state_dir=session.state_dir,
        record=settings.telemetry.record,
        secrets=session.loaded.secrets,
        configure_sdk=True,
        child_nofile=raise_open_files(),
        relay_input=settings.service.relay_input,
    )
    host.reload_from(lambda: _as_spoken(session.read_again(), screen), now=session.loaded)
    screen.detail(f"configuration: {session.loaded.path}; state folder: {session.state_dir}")
    with black_box(host, screen, session.state_dir):
        asyncio.run(
            serve_until_stopped(
                host,
                screen,
                state_dir=session.state_dir,
                loaded=config_loaded(session.loaded),
                watch=session.explicit,
            )
        )
    return 0


def config_loaded(loaded: Loaded) -> ConfigLoaded:
    """The fact that this configuration is in force."""
    from observant_host.host.reload import hash_of

    return ConfigLoaded(
        hash=hash_of(loaded),
        successful=True,
        problems=sum(server.problem is not None for server in loaded.config.servers),
        detail=str(loaded.path),
    )


def spoken(loaded: Loaded, screen: Screen) -> HostConfig:
    """The configuration with logs for a person, where a person watches and nobody asked for
    another form.

    Without -v a terminal shows progress and changes instead of log lines, but for errors.
    """
    config, entries = loaded.config, loaded.assembled.entries
    changes: dict[str, str] = {}
    if screen.live and entries["telemetry", "log_format"].origin.kind == "default":
        changes["log_format"] = "console"
    if entries["telemetry", "log_level"].origin.kind == "default":
        levels = {-1: "warning", 0: "error" if screen.live else "info", 1: "info"}
        changes["log_level"] = levels.get(screen.verbosity, "debug")
    return msgspec.structs.replace(
        config, telemetry=msgspec.structs.replace(config.telemetry, **changes)
    )


def _as_spoken(loaded: Loaded, screen: Screen) -> Loaded:
    assembled = msgspec.structs.replace(loaded.assembled, config=spoken(loaded, screen))
    return msgspec.structs.replace(loaded, assembled=assembled)


async def serve_until_stopped(
    host: Host,
    screen: Screen,
    *,
    state_dir: Path,
    loaded: ConfigLoaded | None = None,
    published: Callable[[dict[str, str]], None] | None = None,
    watch: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM; a second one cuts the draining short. SIGHUP reads the
    configuration again, and with `watch` so does a change of its files.

    `published` is called with the addresses once start-up is over, instead of a summary.
    """
    from observant_host.cli.progress import Progress
    from observant_host.service.app import serve

    stop, hurry = stopping(screen, host)
    progress = Progress(screen, lambda: host.servers)
    beside = tuple(tasks_beside(host, screen, stop, state_dir=state_dir, watch=watch))
    addresses: dict[str, str] = {}

    def listening(at: dict[str, str]) -> None:
        addresses.update(at)
        detail = ", ".join(f"{what} {where}" for what, where in at.items())
        host.telemetry.count(HostLifecycle(what="listening", detail=detail))
        if loaded is not None:
            host.telemetry.count(loaded)
        for task in beside:
            task.start()
        if screen.live:
            progress.start()

    def tell() -> None:
        if published is None:
            summary(screen, host, addresses)
        else:
            published(addresses)

    def started() -> None:
        set_aside()
        if screen.live:
            progress.settled(tell)
        else:
            tell()

    set_aside()  # all that is imported: a start then looks through nothing but what it makes
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
        for task in beside:
            task.stop()
        for task in beside:
            await task.wait()
        await progress.wait()


def tasks_beside(
    host: Host, screen: Screen, stop: Signal, *, state_dir: Path, watch: bool
) -> Iterator[OwnerTask]:
    """What `run` does besides serving: follow the configuration, say what the end waits for, dump
    the last decisions when asked, and reap what only process 1 can reap."""
    from observant_host.host.watched import follow
    from observant_host.supervision.orphans import adopts_orphans, reap_orphans

    clock, hangup = SystemClock(), Signal()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)
    yield OwnerTask(
        "configuration",
        lambda over: follow(
            host,
            over,
            hangup=hangup,
            clock=clock,
            watch=watch,
            refused=lambda error: refused(screen, error),
        ),
    )
    yield dumping(host, state_dir, clock=clock, loop=asyncio.get_running_loop())
    yield OwnerTask("draining", lambda over: tell_draining(over, stop, host=host, screen=screen))
    if adopts_orphans():
        yield OwnerTask(
            "orphans", lambda over: reap_orphans(over, telemetry=host.telemetry, clock=clock)
        )


def refused(screen: Screen, error: HostError) -> None:
    """Why nothing was reloaded, for somebody who watches (elsewhere a log line tells it)."""
    problems = error.problems if isinstance(error, ConfigError) else (str(error),)
    for problem in problems:
        screen.say_live(f"nothing was changed: {problem}")


def stopping(screen: Screen, host: Host) -> tuple[Signal, Signal]:
    """(stop, hurry): set by the first and the second SIGINT or SIGTERM."""
    stop, hurry = Signal(), Signal()

    def end() -> None:
        if stop.is_set():
            screen.say_live("ending at once")
            hurry.set()
        else:
            screen.say_live(f"stopping: {waited_for(host)}; once more ends at once")
            stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    return stop, hurry


def waited_for(host: Host) -> str:
    """What the end waits for, in words."""
    calls, settings = host.open_calls, host.config.service
    delay = f"ready no more, {settings.drain_delay_s:g} s for load balancers to see it, then "
    count = f"{calls} open call{'' if calls == 1 else 's'}"
    waits = f"{count} may end (up to {settings.drain_timeout_s:g} s)" if calls else "no open call"
    return (delay if settings.drain_delay_s else "") + waits


async def tell_draining(over: Signal, stop: Signal, *, host: Host, screen: Screen) -> None:
    """For somebody who watches: how many calls the end still waits for, whenever that changed."""
    clock = SystemClock()
    await wait_any(clock, None, over, stop)
    said = host.open_calls
    while not over.is_set():
        await wait_any(clock, DRAIN_LOOK_S, over)
        if host.open_calls != said:
            said = host.open_calls
            screen.say_live(f"{said} open call{'' if said == 1 else 's'} left")


def metrics_url(addresses: Mapping[str, str]) -> str:
    """Where a browser or Prometheus finds the metrics."""
    return f"{addresses.get('metrics', addresses['admin'])}/metrics"


def agents_url(addresses: Mapping[str, str]) -> str:
    """Where agents find everything."""
    return f"{addresses.get('mcp', addresses['admin'])}/mcp"


def summary(screen: Screen, host: Host, addresses: Mapping[str, str]) -> None:
    """What serves now, for somebody who watches."""
    views = host.servers.values()
    ready = sum(view.state in ("ready", "degraded") for view in views)
    screen.say_live(
        f"serving {len(host.catalogue.tools)} tools of {ready} servers (of {len(views)} configured)"
    )
    screen.say_live(f"agents: {agents_url(addresses)}")
    screen.say_live(f"console: {addresses['admin']}/")
    screen.say_live(f"metrics: {metrics_url(addresses)}")
    screen.say_live("in another terminal: observant-host status; here Ctrl-C stops")
