"""`status`: what every server's state is, why, since when, and what to do about it."""

from __future__ import annotations

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
from observant_host.cli.watching import watched
from observant_host.cli.words import era_of, evidence_line, moment
from observant_host.decisions.words import ago
from observant_host.errors import InvalidCall
from observant_host.timing.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.cli.source import Source

VALUES = 18
"""The column in which the values of one server begin."""


@command(
    "status",
    examples=(
        ("status", "One line for each server."),
        ("status github", "Everything about one server: layers, evidence, what to do."),
        ("status --watch", "Look again whenever something changed, until Ctrl-C."),
        ("status --json | jq '.servers[] | select(.state != \"ready\") | .name'", "For a script."),
    ),
)
@click.argument("server", required=False, shell_complete=server_names)
@click.option("--watch", is_flag=True, help="Look again at every change, until Ctrl-C.")
@json_option
@standalone_option
@config_option
@pass_screen
def status(
    screen: Screen,
    *,
    server: str | None,
    watch: bool,
    as_json: bool,
    standalone: bool,
    config: Path | None,
) -> None:
    """State, era and reason of every server, or everything about SERVER.

    Asks the running host. Without one it says so and ends with exit code 3, unless --standalone
    starts copies of the servers to look at.
    """
    session = Session(screen, config)

    async def look(source: Source) -> None:
        document = await source.servers()
        show(screen, document, server, as_json=as_json)
        if not watch:
            return
        async for document in watched(source):
            if screen.live and not as_json:
                click.clear()
            show(screen, document, server, as_json=as_json)

    session.ask(look, standalone=standalone, may_start=standalone)


def show(screen: Screen, document: bytes, server: str | None, *, as_json: bool) -> None:
    """Print the document of `status`, whole or of one server."""
    servers: list[dict[str, Any]] = msgspec.json.decode(document)["servers"]
    if server is not None:
        servers = [one for one in servers if one["name"] == server]
        if not servers:
            raise InvalidCall(
                f"no server `{server}` is configured; `observant-host status` lists all",
                unknown=True,
            )
    if as_json:
        screen.json({"servers": servers})
    elif server is not None:
        whole(screen, servers[0])
    else:
        lines(screen, servers)


def lines(screen: Screen, servers: list[dict[str, Any]]) -> None:
    """One row for each server, then a sentence for each that needs somebody."""
    now_ns = SystemClock().wall_ns()
    screen.table(
        ("server", "state", "era", "tools", "since", "why"),
        [
            (
                one["name"],
                one["state"],
                era_of(one),
                one["tools"],
                ago(one["since"], now_ns),
                " ".join(filter(None, (one["cause"] or "", one["reason"]))),
            )
            for one in servers
        ],
        fold="why",
    )
    for one in servers:
        quiet = one["state"] in ("ready", "disabled", "stopped") and not one["ruling"]
        if one["detail"] and not quiet:
            screen.prose(addressed(one["name"], one["detail"]), hanging=2)


def addressed(name: str, sentence: str) -> str:
    """`sentence` with the server's name before it, unless it begins with that anyway."""
    return sentence if sentence.startswith(name) else f"{name}: {sentence}"


def whole(screen: Screen, one: dict[str, Any]) -> None:
    """Everything about one server, in words."""
    info = one["server_info"] or {}
    facts = (
        ("state", " ".join(filter(None, (one["state"], one["cause"] and f"({one['cause']})")))),
        ("era", era_of(one)),
        ("reason", one["reason"]),
        ("since", moment(one["since"])),
        ("says it is", " ".join(str(info[key]) for key in ("name", "version") if key in info)),
        ("transport", one["transport"]),
        ("process", one["pid"] or ""),
        ("life", one["generation"]),
        ("tools", one["tools"]),
        ("legacy allowed", "yes" if one["allow_legacy"] else "no"),
        ("fingerprint", one["fingerprint"]),
        ("layers", ", ".join(f"{layer} {word}" for layer, word in one["layers"].items())),
        ("trace", one["trace_id"] or ""),
    )
    screen.answer(one["name"], style="bold")
    for label, value in facts:
        if value != "":
            line = f"  {label:<15} {value}"
            screen.prose(line, hanging=VALUES) if " " in str(value) else screen.answer(line)
    for evidence in one["evidence"]:
        screen.prose(f"  {'evidence':<15} {evidence_line(evidence)}", hanging=VALUES)
    if one["detail"]:
        label = "detail" if one["state"] == "ready" else "what to do"
        screen.prose(f"  {label:<15} {one['detail']}", hanging=VALUES)
