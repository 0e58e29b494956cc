"""`probe`: negotiate now and list, and, where asked, find out what an old server would need."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import click
import msgspec

from observant_host.cli.options import (
    command,
    config_option,
    json_option,
    pass_screen,
    server_names,
    standalone_option,
)
from observant_host.cli.session import Session
from observant_host.cli.status_command import lines
from observant_host.config.suggest import suggestion_lines
from observant_host.errors import InvalidCall

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.cli.source import Source
    from observant_host.supervision.examine import Suggestion

Server = dict[str, Any]

CONVERSED = ("ready", "degraded")


@command(
    "probe",
    examples=(
        ("probe", "Negotiate with every server now; exit code 3 if one is not ready."),
        ("probe archive --suggest-legacy", "Is it old? Which lines would allow it?"),
        ("probe --required-only --json", "For a health check of what must work."),
    ),
)
@click.argument("servers", nargs=-1, shell_complete=server_names)
@click.option(
    "--suggest-legacy",
    is_flag=True,
    help="Try the bounded legacy handshake on ambiguous servers, in processes of their own, and "
    "print the lines to add.",
)
@click.option(
    "--required-only", is_flag=True, help="Only `required` servers count for the exit code."
)
@click.option("--reason", default="", help="Why; a running host records it with your name.")
@json_option
@standalone_option
@config_option
@pass_screen
def probe(
    screen: Screen,
    *,
    servers: tuple[str, ...],
    suggest_legacy: bool,
    required_only: bool,
    reason: str,
    as_json: bool,
    standalone: bool,
    config: Path | None,
) -> int:
    """Negotiate with SERVERs (default: all enabled ones) and list what they offer.

    Exit code 3 if an enabled server that was asked for is not ready.
    """
    session = Session(screen, config)

    async def look(source: Source) -> list[Server]:
        known = msgspec.json.decode(await source.servers())["servers"]
        names = asked_for(servers, known)
        return [msgspec.json.decode(await source.probe(name, reason=reason)) for name in names]

    found = session.ask(look, standalone=standalone, only=servers)
    if as_json:
        screen.json({"servers": found})
    else:
        lines(screen, found)
    if suggest_legacy:
        _suggest(screen, session, found, standalone=standalone, reason=reason)
    return exit_code(found, session.required_names() if required_only else None)


def asked_for(servers: Sequence[str], known: Sequence[Server]) -> list[str]:
    """The servers to probe: those named, or all that are enabled. Raises InvalidCall."""
    names = [one["name"] for one in known]
    for server in servers:
        if server not in names:
            raise InvalidCall(
                f"no server `{server}` is configured; there are: {', '.join(names) or 'none'}",
                unknown=True,
            )
    return list(servers) or [one["name"] for one in known if one["state"] != "disabled"]


def exit_code(found: Sequence[Server], required: Sequence[str] | None) -> int:
    """3 if a server that counts is neither ready nor, though ready, degraded; else 0."""
    counting = [one for one in found if required is None or one["name"] in required]
    return 0 if all(one["state"] in CONVERSED for one in counting) else 3


def pasteable(suggestion: Suggestion) -> str:
    """A `[servers.NAME]` table as TOML, to be pasted into the configuration."""
    keys = dict(suggestion.keys)
    if isinstance(keys.get("legacy_expires"), str):
        keys["legacy_expires"] = date.fromisoformat(keys["legacy_expires"])
    return "\n".join(suggestion_lines(suggestion.server, keys))


def _suggest(
    screen: Screen, session: Session, found: Sequence[Server], *, standalone: bool, reason: str
) -> None:
    names = [one["name"] for one in found if one["era"] == "unknown"]
    if not names:
        screen.say("every server has shown its era; there is nothing to suggest")
    for examination in session.examine(names, standalone=standalone, reason=reason):
        screen.say(f"{examination.server}: {examination.sentence}")
        if examination.suggestion is not None:
            screen.answer(pasteable(examination.suggestion))
