"""Servers as pages show them: a state with its weight, who is needed, and what may be done."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.acts import Act, Step, decide, place
from observant_host.decisions.attention import Attention, Level, attention
from observant_host.decisions.words import OUTCOMES, STEPS, milliseconds
from observant_host.supervision.peer_state import ServerView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from observant_host.config import HostConfig, ServerConfig

_CALM: Final[Mapping[str, str]] = {"ready": "good", "starting": "plain"}
_ORDER: Final = tuple(Level)


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """`weight` is the colour of its state: "good", "plain", "decision", "outage" or "standing"."""

    view: ServerView
    weight: str
    attention: Attention | None

    @property
    def layers(self) -> list[tuple[str, str]]:
        """(layer, how it stands), from the lowest."""
        found = msgspec.structs.asdict(self.view.layers)
        return [(name.replace("_", " "), str(value)) for name, value in found.items()]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One observation of a round, in words."""

    asked: str
    version: str
    came: str
    code: object
    status: object
    took: str
    late: bool
    excerpt: str


def server_of(view: ServerView, config: ServerConfig | None) -> Server:
    needed = attention(
        view.name,
        state=view.state,
        cause=view.cause,
        reason=view.reason,
        ruling=view.ruling.act if view.ruling is not None else None,
        expects_modern=config is not None and config.era.expect_era == "modern",
    )
    weight = needed.level.value if needed is not None else _CALM.get(view.state, "")
    return Server(view=view, weight=weight, attention=needed)


def servers_of(views: Iterable[ServerView], config: HostConfig) -> list[Server]:
    """In the order of the views."""
    configured = {one.name: one for one in config.servers}
    return [server_of(view, configured.get(view.name)) for view in views]


def needing(servers: Iterable[Server]) -> list[Server]:
    """Those who need a person: decisions, then outages, then what stands; the oldest first."""
    found = [one for one in servers if one.attention is not None]
    return sorted(found, key=_urgency)


def _urgency(server: Server) -> tuple[int, str]:
    level = server.attention.level if server.attention is not None else Level.STANDING
    return _ORDER.index(level), server.view.since


def waiting(servers: Iterable[Server]) -> int:
    """How many need a person now; what a person switched off is not waiting."""
    return sum(
        one.attention is not None and one.attention.level is not Level.STANDING for one in servers
    )


def tally(servers: Iterable[Server]) -> list[tuple[str, int, str]]:
    """(state, how many, weight), in the order in which they first come."""
    counts = Counter((one.view.state.value, one.weight) for one in servers)
    return [(_named(state, weight), count, weight) for (state, weight), count in counts.items()]


def _named(state: str, weight: str) -> str:
    return f"{state}, {weight}" if weight in _ORDER else state


def offered(server: Server, config: ServerConfig | None) -> tuple[str, ...]:
    """The acts that make sense where the server stands, those that probably help first."""
    view = server.view
    where = place(
        view.state,
        enabled=config is None or config.enabled,
        configured=config is None or config.problem is None,
        ruling=view.ruling,
    )
    useful = [act.value for act in Act if decide(where, act) not in (Step.REFUSE, Step.NOTHING)]
    if view.ruling is None:
        useful = [act for act in useful if act != Act.ENABLE]
    first = server.attention.acts if server.attention is not None else ()
    return (*first, *(act for act in useful if act not in first))


def evidence_of(view: ServerView) -> list[Evidence]:
    """Of the last round, as it was seen."""
    return [_evidence(one) for one in view.evidence]


def _evidence(said: Mapping[str, Any]) -> Evidence:
    outcome = str(said.get("outcome"))
    silent = outcome == "timeout"
    took = milliseconds(said.get("timeout_ms" if silent else "elapsed_ms"))
    return Evidence(
        asked=STEPS.get(str(said.get("step")), str(said.get("step"))),
        version=str(said.get("version") or ""),
        came=OUTCOMES.get(outcome, outcome),
        code=said.get("rpc_code"),
        status=said.get("http_status"),
        took=took and f"{'within' if silent else 'after'} {took}",
        late=bool(said.get("late")),
        excerpt=str(said.get("excerpt") or ""),
    )
