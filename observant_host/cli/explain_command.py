"""`explain`: every decision about one server's era, in order, in words, with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from observant_host.cli.options import command, config_option, json_option, pass_screen
from observant_host.cli.session import Session
from observant_host.cli.words import decision_line, evidence_line
from observant_host.errors import InvalidCall

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen


@command(
    "explain",
    examples=(
        ("explain archive", "Why it has its era, from the first decision to the last."),
        ("explain archive --json | jq '.decisions[-1].evidence'", "The last decision's evidence."),
    ),
)
@click.argument("server")
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
    for number, decision in enumerate(document["decisions"], start=1):
        screen.answer(f"{number}. {decision_line(decision)}")
        for evidence in decision["evidence"]:
            screen.answer(f"     {evidence_line(evidence)}")
        if decision.get("detail"):
            screen.answer(f"     {decision['detail']}")
        if decision.get("trace_id"):
            screen.detail(f"     trace {decision['trace_id']}")
