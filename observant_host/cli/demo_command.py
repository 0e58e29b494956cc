"""`demo`: everything at work, with servers shipped in the package."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from observant_host.cli.options import command, pass_screen
from observant_host.cli.session import run_async
from observant_host.timing.clock import SystemClock
from observant_host.timing.tasks import spawn

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from observant_host.cli.output import Screen
    from observant_host.demo.stage import Stage
    from observant_host.host import Host

INTERRUPTED = 130

STYLES = {"step": "bold", "kept": "green", "broken": "bold red", "line": ""}


@command(
    "demo",
    examples=(
        ("demo --once", "Tell the story, check it, and end: exit code 0 if every promise held."),
        ("demo", "Tell it, then keep serving the console and /metrics until Ctrl-C."),
        ("demo --dir ./demo", "Keep the configuration, the record and the logs there."),
    ),
)
@click.option("--once", is_flag=True, help="End after the story.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where its files go. Default: a temporary folder, removed at the end.",
)
@click.option(
    "--listen", default="127.0.0.1:8700", show_default=True, help="Console, health and metrics."
)
@pass_screen
def demo(screen: Screen, *, once: bool, folder: Path | None, listen: str) -> int:
    """Show everything with seven sample servers: discovery, colliding names, calls, an old server
    that is allowed and one that is not, a slow one, one behind a URL, a crash and its recovery, a
    refused downgrade.

    It checks its own promises: exit code 1 if one is broken.
    """
    from observant_host.demo.behind_url import serving
    from observant_host.demo.stage import SERVERS, clear, configure

    today = datetime.fromtimestamp(SystemClock().wall_ns() / 1e9, UTC).date()
    with _place(folder) as place:
        stage = clear(place.resolve())
        with serving(
            SERVERS / "http_server.py", "ferries", token=stage.token, log=stage.log("ferries")
        ) as url:
            configure(stage, today=today, listen=listen, ferries_url=url)
            code = run_async(_play(screen, stage, once=once))
    if folder is None:
        screen.say("its folder, record included, is removed; --dir ./demo keeps one to look into")
    return code


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="observant-host-demo-") as made:
        yield Path(made)


async def _play(screen: Screen, stage: Stage, *, once: bool) -> int:
    from observant_host.host import Host

    screen.answer(f"Seven servers, configured in {stage.config}")
    host = Host.from_config(stage.config)
    if not once:
        return await _serve(screen, stage, host)
    async with host:
        return await _tell(screen, stage, host)


async def _serve(screen: Screen, stage: Stage, host: Host) -> int:
    """Serve, tell the story as soon as there is a catalogue, and go on serving."""
    from observant_host.cli.run_command import metrics_url, serve_until_stopped

    telling: list[asyncio.Task[int]] = []

    async def tell(addresses: dict[str, str]) -> int:
        code = await _tell(screen, stage, host)
        screen.answer(f"Console: {addresses['admin']}/")
        screen.answer(f"Metrics: {metrics_url(addresses)}")
        screen.answer(f"In another terminal: observant-host status --config {stage.config}")
        screen.answer("Ctrl-C ends the demo.")
        return code

    await serve_until_stopped(
        host,
        screen,
        state_dir=stage.state_dir,
        published=lambda addresses: telling.append(
            spawn("story", tell(addresses), on_error=lambda *_: None)
        ),
    )
    if telling and telling[0].done() and telling[0].exception() is None:
        return telling[0].result()
    return INTERRUPTED


async def _tell(screen: Screen, stage: Stage, host: Host) -> int:
    """The whole story; 1 if a promise is broken."""
    from observant_host.demo.story import Story
    from observant_host.demo.telling import PlainTeller

    began = SystemClock().monotonic()
    teller = PlainTeller(lambda text, kind: screen.answer(text, style=STYLES[kind]))
    story = Story(host, stage, teller)
    await story.whole()
    screen.answer()
    for promise in story.broken:
        screen.answer(f"broken: {promise}", style="bold red")
    if not story.broken:
        took = SystemClock().monotonic() - began
        screen.answer(f"All {story.kept} promises held, in {took:.0f} s.", style="bold green")
    return 1 if story.broken else 0
