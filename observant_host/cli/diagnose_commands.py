"""`log-level` and `capture`: see more of a running host, for a time that ends by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from observant_host.cli.operate_commands import asked, duration_s
from observant_host.cli.options import (
    command,
    config_option,
    json_option,
    pass_screen,
    server_names,
)
from observant_host.cli.session import Session, run_async
from observant_host.cli.words import moment

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen

LONGEST_LEVEL: Final = "24h"
LONGEST_CAPTURE: Final = "60m"


@command(
    "log-level",
    examples=(
        ("log-level debug", "For 15 minutes; then the configuration's level again."),
        ("log-level debug --for 2h --reason 'the night shift'", "Longer; at most a day."),
        ("log-level info", "Back at once."),
    ),
)
@click.argument("level", type=click.Choice(["debug", "info", "warning", "error"]))
@click.option(
    "--for",
    "duration",
    metavar="D",
    default="15m",
    show_default=True,
    help=f"How long, at most {LONGEST_LEVEL}",
)
@click.option("--reason", default="", help="Why; it is recorded with your name.")
@json_option
@config_option
@pass_screen
def log_level(
    screen: Screen,
    *,
    level: str,
    duration: str,
    reason: str,
    as_json: bool,
    config: Path | None,
) -> None:
    """Have the running host log from LEVEL on; it goes back by itself, and with a restart."""
    for_s = duration_s(duration, at_most=LONGEST_LEVEL)
    raw = run_async(
        asked(
            Session(screen, config),
            "log",
            lambda host: host.log_level(level, for_s=for_s, reason=reason),
        )
    )
    if as_json:
        screen.json(msgspec.Raw(raw))
        return
    found: dict[str, Any] = msgspec.json.decode(raw)
    until = moment(found["until"])
    screen.answer(f"the log is at {found['level']} until {until}, then {found['configured']} again")


@command(
    "capture",
    examples=(
        ("capture github --for 30s", "Every frame, both ways, without contents."),
        ("capture github --for 5m --arguments", "With arguments and results; secrets are masked."),
    ),
)
@click.argument("server", shell_complete=server_names)
@click.option(
    "--for", "duration", metavar="D", required=True, help=f"How long, at most {LONGEST_CAPTURE}."
)
@click.option(
    "--arguments", is_flag=True, help="Keep arguments and results, too: they may be private."
)
@click.option("--reason", default="", help="Why; it is recorded with your name.")
@json_option
@config_option
@pass_screen
def capture(
    screen: Screen,
    *,
    server: str,
    duration: str,
    arguments: bool,
    reason: str,
    as_json: bool,
    config: Path | None,
) -> None:
    """Have the running host write the frames of SERVER to a file that only its user can read.

    From the next frame on, over restarts of the server, until the time or 16 MiB are over. One
    JSON object a line: time, direction, method, id, size, message.
    """
    for_s = duration_s(duration, at_most=LONGEST_CAPTURE)
    raw = run_async(
        asked(
            Session(screen, config),
            "capture",
            lambda host: host.capture(server, for_s=for_s, arguments=arguments, reason=reason),
        )
    )
    if as_json:
        screen.json(msgspec.Raw(raw))
        return
    found: dict[str, Any] = msgspec.json.decode(raw)
    screen.answer(found["file"])
    screen.say(f"frames of {server} go there until {moment(found['until'])}")
