"""Acts on one server of a running host: one table, one command each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click
import msgspec

from observant_host.cli.options import (
    command,
    config_option,
    json_option,
    pass_screen,
    server_names,
)
from observant_host.cli.output import printable
from observant_host.cli.session import Session, run_async
from observant_host.cli.words import era_of
from observant_host.decisions.withheld import split
from observant_host.errors import InvalidCall, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from observant_host.cli.options import Example, ExampleCommand
    from observant_host.cli.output import Screen
    from observant_host.service.client import HostClient

T = TypeVar("T")

UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


ONE_TOOL: Final = ("disable", "enable")
"""Verbs that take SERVER/TOOL, too."""


class Verb(NamedTuple):
    """`help` is the command's; `stands`: it goes on until a time, or until another act."""

    help: str
    examples: tuple[Example, ...]
    stands: bool = False


VERBS: Final = {
    "retry": Verb(
        "Try SERVER again now, however often it failed before. It ends a hold, too.",
        (("retry github", "After you have fixed what was wrong."),),
    ),
    "restart": Verb(
        "End the process or connection of SERVER and begin a new one at once.",
        (("restart github --reason 'leaks memory'", "Calls that are open end with an error."),),
    ),
    "hold": Verb(
        "Leave SERVER as it is: what runs goes on, nothing is restarted or tried again.\n\n"
        "No alert expects it meanwhile. It ends with `retry` or `enable`, or with its time.",
        (("hold github --for 2h --reason 'debugging it'", "For two hours."),),
        stands=True,
    ),
    "disable": Verb(
        "End SERVER at once and leave it off; calls to it are refused with your reason.\n\n"
        "Its names stay its own, and it stays off over a restart of the host, until `enable` or "
        "until the time is over. With SERVER/TOOL one tool is off, and the others go on.",
        (
            ("disable github --reason 'deletes what it should not'", "Until somebody enables it."),
            ("disable github --for 30m", "It comes back by itself."),
            ("disable github/delete_repository", "One tool of it alone."),
        ),
        stands=True,
    ),
    "drain": Verb(
        "Take no new calls for SERVER, let the open ones end (at most drain_timeout_s), then leave "
        "it off as `disable` does.",
        (("drain github --for 1h --reason 'moving its database'", "No call is lost."),),
        stands=True,
    ),
    "enable": Verb(
        "Undo hold, disable or drain: SERVER is started, or goes on by itself. SERVER/TOOL offers "
        "one tool again.",
        (
            ("enable github", "It is listed and called again."),
            ("enable github/delete_repository", "As is the tool."),
        ),
    ),
}
"""In the order in which `--help` shows them."""


def duration_s(text: str, *, at_most: str = "") -> float:
    """Seconds that "90", "30m", "8h", "2d" mean. Raises InvalidCall, also for more than `at_most`,
    a duration too."""
    seconds = _seconds(text)
    if seconds <= 0:
        raise InvalidCall(f"--for {text}: give a duration such as 90s, 30m, 8h, 2d")
    if at_most and seconds > _seconds(at_most):
        raise InvalidCall(f"--for {text} is too long; give at most {at_most}")
    return seconds


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text)
    return float(match[1]) * UNITS[match[2]] if match else 0.0


async def asked(session: Session, verb: str, ask: Callable[[HostClient], Awaitable[T]]) -> T:
    """What only a running host can do. Raises Unavailable where none runs."""
    async with session.running_client() as host:
        if host is None:
            raise Unavailable(
                f"no host is running with the state folder {session.state_dir}, so there is "
                f"nothing to {verb}; `observant-host run` starts one",
                fault="host",
            )
        return await ask(host)


async def _acted(
    session: Session, name: str, target: str, *, for_s: float | None, reason: str
) -> bytes:
    server, tool = split(target)

    def act(host: HostClient) -> Awaitable[bytes]:
        if tool is not None and name in ONE_TOOL:
            on = name == "enable"
            return host.switch_tool(server, tool, on=on, for_s=for_s, reason=reason)
        return host.act(target, name, for_s=for_s, reason=reason)

    return await asked(session, name, act)


def _made(name: str, verb: Verb) -> ExampleCommand:
    """The command `name`."""

    def act(
        screen: Screen,
        *,
        server: str,
        reason: str,
        as_json: bool,
        config: Path | None,
        duration: str | None = None,
    ) -> None:
        for_s = None if duration is None else duration_s(duration)
        work = _acted(Session(screen, config), name, server, for_s=for_s, reason=reason)
        view: dict[str, Any] = msgspec.json.decode(run_async(work))
        if as_json:
            screen.json(view)
            return
        name_, tool = split(server)
        if tool is not None and name in ONE_TOOL:
            offered = "offered again" if name == "enable" else "off: nobody gets it"
            screen.answer(f"the tool {tool} of {name_} is {offered}")
            return
        era = f", era {era_of(view)}" if view["state"] in ("ready", "degraded") else ""
        screen.answer(f"{server} is now {view['state']}{era}")
        if view["detail"] and (view["state"] != "ready" or name == "hold"):
            screen.prose(printable(view["detail"]))

    act.__doc__ = verb.help
    wrapped: Any = pass_screen(act)
    for option in (
        config_option,
        json_option,
        click.option("--reason", default="", help="Why; it is recorded with your name."),
        *([_for] if verb.stands else ()),
        click.argument("server", shell_complete=server_names),
    ):
        wrapped = option(wrapped)
    return command(name, examples=verb.examples)(wrapped)


_for: Final = click.option(
    "--for", "duration", metavar="D", help="How long, such as 30m or 8h; then it ends by itself."
)

COMMANDS: Final = {name: _made(name, verb) for name, verb in VERBS.items()}


def __getattr__(name: str) -> ExampleCommand:
    """Each command by its name, as the list of all commands asks for it."""
    try:
        return COMMANDS[name]
    except KeyError:
        raise AttributeError(name) from None
