"""Why a call goes nowhere, as the error its caller gets: a sentence with the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from observant_host.decisions.faults import fault_of_unavailable
from observant_host.decisions.routes import Released, Unknown, Withheld
from observant_host.errors import InvalidCall, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from observant_host.decisions.catalogue import Catalogue, EntryKind
    from observant_host.decisions.peer_states import PeerStatus

MAX_SHOWN = 128
"""Characters of a caller's wrong name that are repeated to it."""

_COMMANDS = {"tool": "tools", "prompt": "prompts", "resource": "resources"}


def unroutable(server: str, status: PeerStatus | None) -> Unavailable:
    """`status` None: the server is not configured any more."""
    if status is None:
        return Unavailable(f"server {server} is not configured (any more)", fault="policy")
    why = ", ".join(filter(None, (status.cause, status.reason)))
    return Unavailable(
        f"server {server} is {status.state}"
        + (f" ({why})" if why else "")
        + (f": {status.detail}" if status.detail else "")
        + "; the call was not sent",
        delivery="not_sent",
        fault=fault_of_unavailable(status.state, status.cause),
    )


def no_route(
    route: Unknown | Released | Withheld, kind: EntryKind, catalogue: Catalogue
) -> InvalidCall:
    """The caller's own mistake."""
    name = shown(route.name)
    match route:
        case Unknown(close=close):
            return InvalidCall(_unknown(name, kind, close, catalogue), unknown=True)
        case Released(owner=owner, instead=instead):
            offered = f"; call {_either(instead)}" if instead else ""
            said = f"{kind} {name} was given up by server {owner} and is nobody's for now{offered}"
            return InvalidCall(said, unknown=True)
        case Withheld(excluded=lost):
            detail = f": {lost.detail}" if lost.detail else ""
            said = f"{kind} {name} of server {lost.server} is withheld ({lost.reason}{detail})"
            return InvalidCall(said)
        case _:
            assert_never(route)


def shown(name: str) -> str:
    return f'"{name[:MAX_SHOWN]}"'


def _unknown(name: str, kind: EntryKind, close: Sequence[str], catalogue: Catalogue) -> str:
    said = f"no {kind} is called {name}" if kind != "resource" else f"no server lists {name}"
    if close:
        said += f"; did you mean {_either(close)}?"
    else:
        said += f'; "observant-host {_COMMANDS[kind]}" shows what there is'
    if kind == "resource":
        said += "; a resource that is not listed can be read with server="
    missing = ", ".join(f"{m.server} ({m.state})" for m in catalogue.missing)
    return f"{said}. Not listed in this run: {missing}" if missing else said


def _either(names: Sequence[str]) -> str:
    return " or ".join(shown(name) for name in names)
