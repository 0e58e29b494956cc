"""`explain`: every decision about one server's era, in order, in words, with its evidence."""

from __future__ import annotations

from itertools import groupby
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
from observant_host.cli.words import decision_line, evidence_line, moment
from observant_host.errors import InvalidCall

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from observant_host.cli.output import Screen


@command(
    "explain",
    examples=(
        ("explain archive", "Why it has its era, from the first decision to the last."),
        ("explain archive --json | jq '.decisions[-1].evidence'", "The last decision's evidence."),
    ),
)
@click.argument("server", shell_complete=server_names)
@json_option
@config_option
@pass_screen
def explain(screen: Screen, *, server: str, as_json: bool, config: Path | None) -> None:
    """Every decision about SERVER, oldest first, with what it rests on.

    Asks the running host; without one it reads the record on disk.
    """
    session = Session(screen, config)
    raw = session.explain(server)
    document: dict[str, Any] = msgspec.json.decode(raw)
    if as_json:
        screen.json(msgspec.Raw(raw))
        return
    if not document["decisions"]:
        known = session.server_names()
        if known and server not in known:
            raise InvalidCall(f"no server `{server}` is configured; there are: {', '.join(known)}")
        screen.say(f"nothing is recorded about {server} yet; `observant-host run` makes decisions")
    tell(screen, document["decisions"])


def tell(screen: Screen, decisions: Sequence[dict[str, Any]]) -> None:
    """All decisions; of several alike in a row the first, with how often and until when."""
    for number, (_, alike) in enumerate(groupby(decisions, key=_sameness), start=1):
        first, *others = alike
        screen.prose(f"{number}. {decision_line(first)}", hanging=5)
        for evidence in first["evidence"]:
            screen.prose(f"     {evidence_line(evidence)}")
        if first.get("detail"):
            screen.prose(f"     {first['detail']}")
        if others:
            times = "once more" if len(others) == 1 else f"{len(others)} times more"
            screen.prose(f"     the same {times}, last at {moment(others[-1]['time'])}")
        if first.get("trace_id"):
            screen.detail(f"     trace {first['trace_id']}")


def _sameness(decision: dict[str, Any]) -> tuple[object, ...]:
    keys = ("from", "to", "version", "reason", "generation", "direction", "expected")
    return tuple(decision[key] for key in keys)
