"""`calls` and `cancel`: what is on its way through the running host, and how to end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from observant_host.cli.operate_commands import asked
from observant_host.cli.options import command, config_option, json_option, pass_screen
from observant_host.cli.output import printable
from observant_host.cli.session import Session, run_async
from observant_host.cli.words import moment
from observant_host.decisions.words import ago
from observant_host.timing.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen

RECENT = 10
"""Ended calls that a person is shown; `--all` shows what the host remembers."""


@command(
    "calls",
    examples=(
        ("calls", "What is on its way now, and the last calls that ended."),
        ("calls --all", "All ended calls that the host remembers."),
        ("calls --json | jq -r '.in_flight[].id'", "For a script."),
    ),
)
@click.option("--all", "everything", is_flag=True, help="All ended calls, not the last ten.")
@json_option
@config_option
@pass_screen
def calls(screen: Screen, *, everything: bool, as_json: bool, config: Path | None) -> None:
    """Calls on their way through the running host, with their ids, and the last that ended."""
    raw = run_async(asked(Session(screen, config), "show", lambda host: host.calls()))
    if as_json:
        screen.json(msgspec.Raw(raw))
        return
    found: dict[str, Any] = msgspec.json.decode(raw)
    in_flight(screen, found["in_flight"])
    ended = found["recent"] if everything else found["recent"][:RECENT]
    if ended:
        screen.answer()
        recent(screen, ended)


def in_flight(screen: Screen, open_calls: list[dict[str, Any]]) -> None:
    """One row a call; a sentence where there is none."""
    if not open_calls:
        screen.answer("no call is on its way")
        return
    now_ns = SystemClock().wall_ns()
    screen.table(
        ("id", "call", "server", "who", "state", "attempts", "since", "progress"),
        [
            (
                one["id"],
                printable(one["name"] or one["method"]),
                one["server"],
                printable(one["principal"] or ""),
                one["state"],
                one["attempts"],
                ago(one["since"], now_ns),
                progress(one["progress"]),
            )
            for one in open_calls
        ],
        fold="progress",
    )


def progress(told: dict[str, Any] | None) -> str:
    """E.g. "3 of 10: reading"."""
    if told is None:
        return ""
    total = f" of {told['total']:g}" if told["total"] is not None else ""
    message = f": {printable(told['message'])}" if told["message"] else ""
    return f"{told['progress']:g}{total}{message}"


def recent(screen: Screen, ended: list[dict[str, Any]]) -> None:
    """One row for each call that ended, newest first."""
    screen.table(
        ("ended", "call", "server", "who", "outcome", "delivery", "fault", "took", "trace"),
        [
            (
                moment(one["time"]),
                printable(one["name"] or one["method"]),
                one["server"],
                printable(one["principal"] or ""),
                one["outcome"],
                one["delivery"],
                one["fault"],
                f"{one['duration_ms']:.0f} ms",
                one["trace_id"],
            )
            for one in ended
        ],
        fold="trace",
    )


@command(
    "cancel",
    examples=(("cancel 4711 --reason 'it hangs'", "Its caller hears who ended it and why."),),
)
@click.argument("call_id", metavar="ID")
@click.option("--reason", default="", help="Why; it is recorded with your name.")
@json_option
@config_option
@pass_screen
def cancel(
    screen: Screen, *, call_id: str, reason: str, as_json: bool, config: Path | None
) -> None:
    """End the call ID (see `calls`), at its server too.

    What it has done by then, it has done: its caller hears whether it may have been executed.
    """
    session = Session(screen, config)
    raw = run_async(asked(session, "cancel", lambda host: host.cancel(call_id, reason=reason)))
    if as_json:
        screen.json(msgspec.Raw(raw))
        return
    call: dict[str, Any] = msgspec.json.decode(raw)
    sent = "it was sent" if call["state"] == "sent" else "it had not been sent"
    what = printable(call["name"] or call["method"])
    screen.answer(f"call {call['id']} of {what} at {call['server']} is cancelled; {sent}")
