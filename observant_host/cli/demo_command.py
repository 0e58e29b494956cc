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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from observant_host.cli.output import Screen
    from observant_host.demo.stage import Stage

STYLES = {"step": "bold", "kept": "green", "broken": "bold red", "line": ""}


@command(
    "demo",
    examples=(
        ("demo --once", "Tell the story, check it, and end: exit code 0 if every promise held."),
        ("demo", "Tell it, then keep serving /metrics until Ctrl-C."),
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
@click.option("--listen", default="127.0.0.1:8700", show_default=True, help="Health and metrics.")
@pass_screen
def demo(screen: Screen, *, once: bool, folder: Path | None, listen: str) -> int:
    """Show everything with six sample servers: discovery, colliding names, calls, an old server
    that is allowed and one that is not, a slow one, a crash and its recovery, a refused downgrade.

    It checks its own promises: exit code 1 if one is broken.
    """
    from observant_host.demo.stage import build

    today = datetime.fromtimestamp(SystemClock().wall_ns() / 1e9, UTC).date()
    with _place(folder) as place:
        stage = build(place.resolve(), today=today, listen=listen)
        return run_async(_play(screen, stage, once=once))


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="observant-host-demo-") as made:
        yield Path(made)


async def _play(screen: Screen, stage: Stage, *, once: bool) -> int:
    from observant_host.demo.story import Story
    from observant_host.demo.telling import PlainTeller
    from observant_host.host import Host

    teller = PlainTeller(lambda text, kind: screen.answer(text, style=STYLES[kind]))
    screen.answer(f"Six servers, configured in {stage.config}")
    began = SystemClock().monotonic()
    async with Host.from_config(stage.config) as host:
        story = Story(host, stage, teller)
        await story.whole()
        took = SystemClock().monotonic() - began
        screen.answer()
        if story.broken:
            screen.answer(f"{len(story.broken)} promises are broken:", style="bold red")
            for promise in story.broken:
                screen.answer(f"  {promise}", style="red")
        else:
            screen.answer(f"All {story.kept} promises held, in {took:.0f} s.", style="bold green")
    return 1 if story.broken else 0
