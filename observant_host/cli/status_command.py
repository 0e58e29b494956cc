"""`status`: what every server's state is, why, since when, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from observant_host.cli import series
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
from observant_host.decisions.words import ago, counted
from observant_host.errors import HostError, InvalidCall
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
        async def shown(document: bytes, *, again: bool) -> None:
            uses = "" if server is None or as_json else await used(source, server)
            if again and screen.live and not as_json:
                click.clear()
            show(screen, document, server, as_json=as_json, uses=uses)

        await shown(await source.servers(), again=False)
        if watch:
            async for document in watched(source):
                await shown(document, again=True)

    session.ask(look, standalone=standalone, may_start=standalone)


async def used(source: Source, server: str) -> str:
    """What the processes of a server take, as the running host's metrics say; "" where they do not.
    A host of our own has only just started them."""
    from observant_host.service.client import HostClient

    if not isinstance(source, HostClient):
        return ""
    try:
        return usage(await source.metrics(), server)
    except HostError:
        return ""


def usage(metrics: bytes, server: str) -> str:
    """In words; "" for a server without processes of ours."""
    names = ("peer_processes", "peer_resident_memory_bytes", "peer_open_fds")
    values = [series.by_label(metrics, name, "peer").get(server) for name in names]
    if None in values:
        return ""
    processes, resident, files = (int(value or 0) for value in values)
    held = f"{resident / (1 << 20):,.0f} MiB of memory"
    many = "1 process" if processes == 1 else f"{processes} processes"
    return f"{held} in {many}, {counted(files, 'open file')}"


def show(
    screen: Screen, document: bytes, server: str | None, *, as_json: bool, uses: str = ""
) -> None:
    """Print the document of `status`, whole or of one server, which `uses` so much."""
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
        whole(screen, servers[0], uses=uses)
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


def whole(screen: Screen, one: dict[str, Any], *, uses: str = "") -> None:
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
        ("uses", uses),
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
