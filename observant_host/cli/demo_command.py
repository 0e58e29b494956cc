"""`demo`: everything at work, with servers shipped in the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from observant_host.cli.options import command, pass_screen

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen


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
    type=click.Path(path_type=__import__("pathlib").Path, file_okay=False),
    help="Where its files go. Default: a temporary folder, removed at the end.",
)
@click.option("--listen", default="127.0.0.1:8700", show_default=True, help="Health and metrics.")
@pass_screen
def demo(screen: Screen, *, once: bool, folder: Path | None, listen: str) -> int:
    """Six sample servers: discovery, colliding names, calls, an old server that is allowed and one
    that is not, a slow one, a crash and its recovery, a refused downgrade.
    """
    raise NotImplementedError(screen, once, folder, listen)
