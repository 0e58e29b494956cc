"""`record purge`: delete decisions and traces from the disk, by age and by server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click
import msgspec

from observant_host.cli.moments import before as moment_before
from observant_host.cli.options import command, config_option, json_option, pass_screen
from observant_host.cli.session import Session, run_async
from observant_host.decisions.words import counted
from observant_host.errors import HostError
from observant_host.timing.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.incidents.purge import Wanted


@click.group("record")
def record() -> None:
    """What is recorded on disk. observant-host record purge --before 30d"""


@command(
    "purge",
    examples=(
        ("record purge --before 30d", "Everything older than thirty days."),
        ("record purge --server archive --reason 'request 4711'", "All about one server."),
        ("record purge --server archive --before 2026-11-01 --dry-run", "What would go?"),
        ("record purge --server archive --audit", "Who called it, too."),
    ),
)
@click.option("--before", help="Older than this: a duration, a date or a moment.")
@click.option("--server", help="About this server, configured or not.")
@click.option("--audit", is_flag=True, help="From the audit, too (who called what).")
@click.option("--dry-run", is_flag=True, help="Count, delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reason", default="", help="Why; a running host records it with your name.")
@json_option
@config_option
@pass_screen
def purge(
    screen: Screen,
    *,
    before: str | None,
    server: str | None,
    audit: bool,
    dry_run: bool,
    yes: bool,
    reason: str,
    as_json: bool,
    config: Path | None,
) -> None:
    """Delete decisions and traces that ended before a moment, or are about one server, or both.

    Deleted is deleted: there is no copy. A running host finishes the files that it is writing and
    deletes for you; without one it is done here. `memory.json` (which server was modern, whose a
    name is), captures and what crashes left are not part of the record, and are left as they are;
    the audit is too, unless you say --audit. That deletes with your own rights to its files: no
    host does it for anybody. Asks first, on a terminal.
    """
    if before is None and server is None:
        raise click.UsageError("say --before, --server, or both")
    now_ns = SystemClock().wall_ns()
    before_ns = None if before is None else moment_before(before, now_ns=now_ns, option="--before")
    if not (yes or dry_run) and screen.live:
        what = "record and audit" if audit else "record"
        click.confirm(f"Delete this from the {what} for good?", abort=True, err=True)
    session = Session(screen, config)
    told = f"{reason} (from the audit, too)".strip() if audit else reason
    raw = run_async(_purged(session, before_ns, server, dry_run=dry_run, reason=told))
    gone: dict[str, Any] = msgspec.json.decode(raw)
    if audit:
        gone["audit"] = _from_audit(session.state_dir, before_ns, server, dry_run=dry_run)
    if as_json:
        screen.json(gone)
        return
    tell(screen, gone, counted(gone["spans"], "span"), dry_run=dry_run)
    if audit:
        lines = counted(gone["audit"]["lines"], "line")
        tell(screen, gone["audit"], f"of the audit {lines}", dry_run=dry_run)
    tell_left(screen, session.state_dir, audit=audit)


def _from_audit(
    state_dir: Path, before_ns: int | None, server: str | None, *, dry_run: bool
) -> dict[str, Any]:
    """Here, whoever deleted from the record: a running host has let go of its file by then."""
    from observant_host.incidents.purge import Wanted
    from observant_host.incidents.purge_audit import purge_audit

    wanted = Wanted(before_ns=before_ns, server=server)
    try:
        gone: dict[str, Any] = msgspec.to_builtins(purge_audit(state_dir, wanted, dry_run=dry_run))
    except OSError as error:
        raise HostError(f"not everything could be deleted from the audit: {error}") from None
    return {"lines": gone.pop("spans"), **gone}


async def _purged(
    session: Session, before_ns: int | None, server: str | None, *, dry_run: bool, reason: str
) -> bytes:
    from observant_host.incidents.purge import Wanted

    async with session.running_client() as running:
        if running is not None:
            return await running.purge(
                before_s=None if before_ns is None else before_ns / 1e9,
                server=server,
                dry_run=dry_run,
                reason=reason,
            )
    session.screen.detail(f"deleting from the record in {session.state_dir}")
    wanted = Wanted(before_ns=before_ns, server=server)
    return await asyncio.to_thread(_here, session.state_dir, wanted, dry_run=dry_run)


def _here(state_dir: Path, wanted: Wanted, *, dry_run: bool) -> bytes:
    from observant_host.incidents.purge import purge as purge_record

    try:
        return msgspec.json.encode(purge_record(state_dir, wanted, dry_run=dry_run))
    except OSError as error:
        raise HostError(f"not everything could be deleted: {error}") from None


def tell(screen: Screen, gone: dict[str, Any], what: str, *, dry_run: bool) -> None:
    """What went, or would go."""
    verb = "would be deleted" if dry_run else "deleted"
    went = f"{what} in {counted(gone['files'], 'file')} {verb}"
    screen.answer(f"{went}, {gone['freed_bytes'] / 1e6:.1f} MB")
    if gone["unreadable"]:
        screen.say(f"{counted(gone['unreadable'], 'unreadable line')} {verb} too")
    if gone["held"]:
        screen.say(
            f"{counted(gone['held'], 'file')} being written by another process: not touched",
            style="yellow",
        )


def tell_left(screen: Screen, state_dir: Path, *, audit: bool) -> None:
    """What lies beside the record, so that nobody takes a purge for more than it is."""
    from observant_host.incidents.purge_audit import FOLDER, beside

    found = beside(state_dir)
    if audit:
        found.pop(FOLDER, None)
    if not found:
        return
    hint = " (--audit deletes from it)"
    parts = [
        f"{name}{hint if name == FOLDER else ''}: {counted(count, 'file')}"
        for name, count in found.items()
    ]
    screen.say(f"left as they are in {state_dir}: {', '.join(parts)}")


record.add_command(purge)
