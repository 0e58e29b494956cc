"""`allow`: a person permits one server the bounded legacy handshake; a recorded decision."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from observant_host.cli.options import (
    command,
    config_option,
    json_option,
    pass_screen,
    server_names,
)
from observant_host.cli.session import Session
from observant_host.cli.words import era_of
from observant_host.errors import InvalidCall
from observant_host.timing.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.cli.source import Source

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@command(
    "allow",
    examples=(
        ("allow archive --reason 'to be replaced in spring'", "For 180 days."),
        ("allow archive --until 2027-03-31", "To the end of that day, UTC."),
        ("allow archive --until 8h --reason 'rollback of release 7'", "For this shift."),
    ),
)
@click.argument("server", shell_complete=server_names)
@click.option("--until", help="A date, a moment (ISO 8601), or a duration such as 30d, 8h.")
@click.option("--reason", default="", help="Why; it is recorded with your name.")
@json_option
@config_option
@pass_screen
def allow(
    screen: Screen,
    *,
    server: str,
    until: str | None,
    reason: str,
    as_json: bool,
    config: Path | None,
) -> None:
    """Permit SERVER, as it is configured now, the bounded legacy handshake.

    It also forgets that the server was once modern, and tries it at once. The permission ends at
    --until (default: 180 days), or as soon as the server's command changes. It is kept in the state
    folder; to keep it in the configuration, add `allow_legacy` there instead.
    """
    ends = None if until is None else moment_of(until, now=SystemClock().wall_ns() / 1e9)

    async def permit(source: Source) -> bytes:
        return await source.allow(server, until=ends, reason=reason)

    raw = Session(screen, config).ask(permit, standalone=False, only=(server,))
    view: dict[str, Any] = msgspec.json.decode(raw)
    if as_json:
        screen.json(view)
        return
    screen.answer(f"{server} is now {view['state']}, era {era_of(view)} ({view['reason']})")
    if view["state"] != "ready":
        screen.prose(view["detail"])


def moment_of(text: str, *, now: float) -> float:
    """Epoch seconds that `--until` means; a date counts to the end of that day, UTC.

    Raises InvalidCall for what is no moment or is over.
    """
    until = _parsed(text, now)
    if until is None:
        raise InvalidCall(
            f"--until {text}: give a date (2027-03-31), a moment (2027-03-31T18:00Z) "
            "or a duration (30d, 8h, 45m)"
        )
    if until <= now:
        raise InvalidCall(f"--until {text}: that is over already")
    return until


def _parsed(text: str, now: float) -> float | None:
    if duration := re.fullmatch(r"(\d+)([smhdw])", text):
        return now + int(duration[1]) * UNITS[duration[2]]
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            following = date.fromisoformat(text) + timedelta(days=1)
            return datetime.combine(following, time(), tzinfo=UTC).timestamp()
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
