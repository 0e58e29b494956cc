"""`incidents`: each downgrade, outage and refusal of a time, and why, from one record or many."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from observant_host.cli.incident_report import (
    allowed_line,
    as_allowed,
    head,
    lines,
    markdown,
    title,
)
from observant_host.cli.moments import before
from observant_host.cli.options import command, config_option, json_option, pass_screen
from observant_host.cli.session import Session, run_async
from observant_host.errors import InvalidCall
from observant_host.timing.clock import SystemClock

if TYPE_CHECKING:
    from observant_host.cli.output import Screen
    from observant_host.incidents.answer import Question, Sources

STYLES = {"high": "bold red", "medium": "bold yellow", "low": "bold"}
LABEL = 12
"""Columns for the names of things."""


@command(
    "incidents",
    examples=(
        ("incidents", "The last 24 hours of the running host, or of its record."),
        ("incidents --since 7d --server billing", "One server, one week."),
        ("incidents --since 7d --format markdown > review.md", "For the review."),
        (
            "incidents --state-dir /mnt/a --state-dir /mnt/b --json",
            "Several hosts' folders: one incident with several witnesses.",
        ),
        ("incidents --from /var/log/otel/spans.jsonl", "What a collector's file exporter wrote."),
        ("incidents --tempo http://127.0.0.1:3200 --since 2h", "What a Tempo has."),
    ),
)
@click.option("--since", default="24h", show_default=True, help="A duration, a date or a moment.")
@click.option("--until", help="The same; default: now.")
@click.option("--server", help="Only incidents of this server.")
@click.option(
    "--state-dir",
    "state_dirs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A host's state folder; may be given more than once.",
)
@click.option(
    "--from",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file or folder of OTLP JSON lines (an OpenTelemetry collector's file exporter).",
)
@click.option("--tempo", metavar="URL", help="A Tempo's HTTP API.")
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text",
    show_default=True,
)  # fmt: skip
@json_option
@config_option
@pass_screen
def incidents(
    screen: Screen,
    *,
    since: str,
    until: str | None,
    server: str | None,
    state_dirs: tuple[Path, ...],
    files: tuple[Path, ...],
    tempo: str | None,
    form: str,
    as_json: bool,
    config: Path | None,
) -> None:
    """What went wrong, when, why, and what it did to calls.

    Asks the running host; without one, or where a source is given, it reads the record. A class
    with low confidence is a guess; its reasons say what it rests on.
    """
    from observant_host.incidents.answer import Question, Sources

    now_ns = SystemClock().wall_ns()
    question = Question(
        since_ns=before(since, now_ns=now_ns, option="--since"),
        until_ns=now_ns if until is None else before(until, now_ns=now_ns, option="--until"),
        server=server,
    )
    _there("--state-dir", state_dirs)
    _there("--from", files)
    sources = Sources(state_dirs=state_dirs, files=files, tempo=tempo)
    raw = run_async(_asked(Session(screen, config), sources, question))
    tell(screen, raw, form="json" if as_json else form, whole=server is not None)


def _there(option: str, places: tuple[Path, ...]) -> None:
    """Raises InvalidCall for a place that is not there: it is no place without incidents."""
    for place in places:
        if not place.exists():
            raise InvalidCall(f"{option} {place}: there is nothing of that name")


async def _asked(session: Session, sources: Sources, question: Question) -> bytes:
    if sources.state_dirs or sources.files or sources.tempo is not None:
        return await asyncio.to_thread(_read, sources, question)
    async with session.running_client() as running:
        if running is not None:
            return await running.incidents(
                since_s=question.since_ns / 1e9,
                until_s=question.until_ns / 1e9,
                server=question.server,
            )
    session.screen.detail(f"reading the record in {session.state_dir}")
    own = msgspec.structs.replace(sources, state_dirs=(session.state_dir,))
    return await asyncio.to_thread(_read, own, question)


def _read(sources: Sources, question: Question) -> bytes:
    from observant_host import config_files
    from observant_host.incidents import answer

    cache = config_files.Surroundings.of_process().folder("cache")
    placed = msgspec.structs.replace(sources, index=answer.index_path(sources, cache))
    return msgspec.json.encode(answer.incidents(placed, question))


def tell(screen: Screen, raw: bytes, *, form: str, whole: bool) -> None:
    """The document as it is asked for. Unless it is to be told `whole`, a person is told what went
    as it was allowed in one sentence: it would hide the rest."""
    document: dict[str, Any] = msgspec.json.decode(raw)
    if form == "json":
        screen.json(msgspec.Raw(raw))
    elif form == "markdown":
        screen.answer(markdown(document).rstrip())
    else:
        allowed = [one for one in document["incidents"] if as_allowed(one) and not whole]
        told = [one for one in document["incidents"] if one not in allowed]
        screen.prose(head({**document, "incidents": told}), style="bold")
        for incident in told:
            screen.answer()
            screen.prose(title(incident), style=STYLES[incident["confidence"]])
            screen.prose(f"  {'id':<{LABEL}}{incident['id']}")
            for label, text in lines(incident):
                screen.prose(f"  {label:<{LABEL}}{text}", hanging=LABEL + 2)
        if allowed:
            screen.answer()
            screen.prose(allowed_line(allowed))
