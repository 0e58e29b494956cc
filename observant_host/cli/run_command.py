"""`run`: serve until stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from observant_host.cli.options import command, config_option, pass_screen
from observant_host.cli.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen


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
    session = Session(screen, config)
    raise NotImplementedError(session, listen)
