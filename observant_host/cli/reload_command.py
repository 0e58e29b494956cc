"""`reload`: have the running host take its changed configuration, or show what that would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from observant_host.cli.options import command, config_option, json_option, pass_screen
from observant_host.cli.output import printable
from observant_host.cli.session import Session, run_async
from observant_host.errors import Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen


@command(
    "reload",
    examples=(
        ("reload --dry-run", "What would change? Nothing does yet."),
        ("reload --reason 'new token'", "Apply it; the reason is recorded with your name."),
        ("reload --json", "The plan for a script."),
    ),
)
@click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option("--reason", default="", help="Why; it is recorded with your name.")
@json_option
@config_option
@pass_screen
def reload(
    screen: Screen, *, dry_run: bool, reason: str, as_json: bool, config: Path | None
) -> None:
    """Have the running host read its configuration again and apply what changed.

    Servers that did not change are not touched. A server whose start changed finishes its open
    calls first. A configuration that cannot be used changes nothing: exit code 2. The host reads
    the file that it was started with; --config only says which host is meant.
    """
    raw = run_async(_reloaded(Session(screen, config), dry_run=dry_run, reason=reason))
    if as_json:
        screen.json(msgspec.Raw(raw))
        return
    found: dict[str, Any] = msgspec.json.decode(raw)
    for warning in found["warnings"]:
        screen.say(f"warning: {printable(warning)}", style="yellow")
    screen.answer(f"{'would be done' if dry_run else 'done'}, by {printable(found['file'])}:")
    for sentence in found["sentences"]:
        screen.prose(printable(sentence) if sentence[:1] != " " else f"  {printable(sentence)}")


async def _reloaded(session: Session, *, dry_run: bool, reason: str) -> bytes:
    async with session.running_client() as client:
        if client is None:
            raise Unavailable(
                f"no host is running with the state folder {session.state_dir}; `observant-host "
                "run` starts one, `observant-host config check` checks a file"
            )
        return await client.reload(dry_run=dry_run, reason=reason)
