"""Why a call goes nowhere, as the error its caller gets: a sentence with the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from observant_host.decisions.faults import fault_of_unavailable
from observant_host.decisions.names import SEPARATOR
from observant_host.decisions.routes import Released, Unknown
from observant_host.decisions.terms import PeerState
from observant_host.errors import CallError, CallFacts, InvalidCall, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from observant_host.decisions.catalogue import Catalogue, EntryKind
    from observant_host.decisions.peer_states import PeerStatus
    from observant_host.decisions.routes import Withheld

E = TypeVar("E", bound=CallError)

MAX_SHOWN: Final = 128
"""Characters of a caller's wrong name that are repeated to it."""

_WORDS: Final = {PeerState.BACKOFF: "down and waits for its next start"}

_COMMANDS: Final = {"tool": "tools", "prompt": "prompts", "resource": "resources"}


def unroutable(server: str, status: PeerStatus | None) -> Unavailable:
    """`status` None: the server is not configured any more."""
    if status is None:
        return Unavailable(f"server {server} is not configured (any more)", fault="policy")
    if status.state in (PeerState.READY, PeerState.DEGRADED):  # which it is to change in a moment
        return Unavailable(f"server {server} has just lost its process or connection")
    detail = f": {status.detail.rstrip('.')}" if status.detail else ""
    return Unavailable(
        f"server {server} {_standing(status)}{detail}",
        delivery="not_sent",
        fault=fault_of_unavailable(status.state, status.cause),
    )


def meant(error: E, server: str, local_name: str) -> E:
    """`error`, which says besides at which server's door the call ended."""
    error.call = CallFacts(name="", server=server, local_name=local_name)
    return error


def local_part(name: str, server: str) -> str:
    """What `server` would call it: a qualified name without the server, a bare one as it is."""
    return name.removeprefix(f"{server}{SEPARATOR}")


def _standing(status: PeerStatus) -> str:
    """The state in words. `reason` is that of the last decision about the era: it explains a
    refusal, but not why a server that was up went down; there the detail says what happened."""
    state = _WORDS.get(status.state, status.state)
    told = (status.cause, status.reason if status.state is PeerState.UNAVAILABLE else "")
    why = ", ".join(filter(None, told))
    return f"is {state} ({why})" if why else f"is {state}"


def no_route(
    route: Unknown | Released | Withheld, kind: EntryKind, catalogue: Catalogue
) -> InvalidCall:
    """The caller's own mistake."""
    name = shown(route.name)
    if isinstance(route, Unknown):
        return InvalidCall(_unknown(name, kind, route.close, catalogue), unknown=True)
    if isinstance(route, Released):
        offered = f"; call {_either(route.instead)}" if route.instead else ""
        said = f"{kind} {name} was given up by server {route.owner} and is nobody's for now"
        return InvalidCall(said + offered, unknown=True)
    lost = route.excluded
    detail = f": {lost.detail}" if lost.detail else ""
    said = f"{kind} {name} of server {lost.server} is withheld ({lost.reason}{detail})"
    return meant(InvalidCall(said), lost.server, lost.local_name)


def shown(name: str) -> str:
    return f'"{name[:MAX_SHOWN]}"'


def _unknown(name: str, kind: EntryKind, close: Sequence[str], catalogue: Catalogue) -> str:
    said = f"no {kind} is called {name}" if kind != "resource" else f"no server lists {name}"
    if close:
        said += f"; did you mean {_either(close)}?"
    else:
        said += f'; "observant-host {_COMMANDS[kind]}" shows what there is'
    if kind == "resource":
        said += "; what no server lists is read by naming its server (server=, --server)"
    if catalogue.version == 0:
        return f"{said}. No server has listed anything yet: ask again once one is ready"
    missing = ", ".join(f"{m.server} ({m.state})" for m in catalogue.missing)
    return f"{said}. Not listed in this run: {missing}" if missing else said


def _either(names: Sequence[str]) -> str:
    return " or ".join(shown(name) for name in names)
