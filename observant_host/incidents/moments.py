"""What happened, read from recorded spans: the few facts that incidents are made of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.incidents.otlp import RecordedSpan

_PREFIX: Final = "observant_host."


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Base. `host` is the instance that told it, `peer` the server or "" for the host itself."""

    at_ns: int
    host: str
    peer: str
    trace_id: str
    build: str


class Decided(Moment, frozen=True, kw_only=True):
    """One decision about an era; `start_ns` is when its round began."""

    start_ns: int
    generation: int
    trigger: str
    previous: str
    selected: str
    direction: str
    reason: str
    expected: bool
    version: str | None
    candidates: tuple[str, ...]
    server_version: str | None
    detail: str
    evidence: tuple[Mapping[str, Any], ...]


class Moved(Moment, frozen=True, kw_only=True):
    """A change of a peer's state."""

    previous: str
    state: str
    cause: str | None
    reason: str
    detail: str


class Restarted(Moment, frozen=True, kw_only=True):
    reason: str
    exit_code: int | None
    gave_up: bool
    stderr: str


class Dropped(Moment, frozen=True, kw_only=True):
    """A life ended, and its era with it."""

    era: str
    why: str


class Acted(Moment, frozen=True, kw_only=True):
    """A person's act; `peer` "" where it is about the host."""

    verb: str
    principal: str
    reason: str


class Configured(Moment, frozen=True, kw_only=True):
    hash: str
    successful: bool


class Lived(Moment, frozen=True, kw_only=True):
    """The host started, was published, stopped, …"""

    what: str


class Stalled(Moment, frozen=True, kw_only=True):
    lag_ms: float


class Lost(Moment, frozen=True, kw_only=True):
    stream: str
    spans: int


EVIDENCE: Final = (
    *("step", "version", "outcome", "rpc_code", "http_status", "content_type", "excerpt"),
    *("elapsed_ms", "timeout_ms", "late"),
)
"""Keys of one piece of evidence; those that were not observed are null."""


def moment_of(span: RecordedSpan) -> Moment | None:
    """The fact of this span; None for any other span, and for a decision that was cut off."""
    make = _MAKERS.get(span.name)
    return make(_Reader(span)) if make is not None else None


def iso_time(time_ns: int) -> str:
    """UTC with milliseconds, as every time in the JSON of this host."""
    moment = datetime.fromtimestamp(time_ns / 1e9, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def evidence_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """One evidence object from its event."""
    seen = {key.rpartition("evidence.")[2]: value for key, value in attributes.items()}
    return {key: seen.get(key, False if key == "late" else None) for key in EVIDENCE}


class _Reader:
    """Attributes by their short keys, with what every moment has."""

    def __init__(self, span: RecordedSpan) -> None:
        self.span = span
        self.common: dict[str, Any] = {
            "at_ns": span.end_ns,
            "host": span.instance,
            "peer": self.text("peer.name"),
            "trace_id": span.trace_id,
            "build": span.service_version,
        }

    def get(self, key: str) -> Any:
        return self.span.attributes.get(_PREFIX + key)

    def text(self, key: str) -> str:
        value = self.get(key)
        return "" if value is None else str(value)

    def number(self, key: str) -> float:
        value = self.get(key)
        return value if isinstance(value, int | float) else 0

    def maybe(self, key: str) -> str | None:
        return self.text(key) or None


def _decided(read: _Reader) -> Decided | None:
    span = read.span
    if not read.text("era.reason"):  # it was cancelled before it decided anything
        return None
    candidates = read.get("era.candidates")
    return Decided(
        **read.common,
        start_ns=span.start_ns,
        generation=int(read.number("peer.generation")),
        trigger=read.text("era.trigger"),
        previous=read.text("era.previous") or "unknown",
        selected=read.text("era.selected") or "unknown",
        direction=read.text("era.direction") or "none",
        reason=read.text("era.reason"),
        expected=read.get("era.expected") is not False,
        version=span.attributes.get("mcp.protocol.version"),
        candidates=tuple(map(str, candidates)) if isinstance(candidates, list) else (),
        server_version=read.maybe("server.version"),
        detail=read.text("era.detail"),
        evidence=tuple(evidence_of(one) for name, one in span.events if name == "evidence"),
    )


def _moved(read: _Reader) -> Moved:
    return Moved(
        **read.common,
        previous=read.text("state.previous"),
        state=read.text("state.state"),
        cause=read.maybe("state.cause"),
        reason=read.text("state.reason"),
        detail=read.text("state.detail"),
    )


def _restarted(read: _Reader) -> Restarted:
    code = read.get("restart.exit_code")
    stderr = [one for name, one in read.span.events if name == "stderr"]
    return Restarted(
        **read.common,
        reason=read.text("restart.reason"),
        exit_code=code if isinstance(code, int) else None,
        gave_up=read.get("restart.gave_up") is True,
        stderr=str(next(iter(stderr[0].values()), "")) if stderr else "",
    )


def _dropped(read: _Reader) -> Dropped:
    return Dropped(
        **read.common,
        era=read.text("peer.era") or read.text("era.era"),
        why=read.text("era.dropped_because"),
    )


def _acted(read: _Reader) -> Acted:
    return Acted(
        **read.common,
        verb=read.text("operator.verb"),
        principal=read.text("operator.principal"),
        reason=read.text("operator.reason"),
    )


def _configured(read: _Reader) -> Configured:
    return Configured(
        **read.common,
        hash=read.text("config.hash"),
        successful=read.get("config.successful") is not False,
    )


def _lived(read: _Reader) -> Lived:
    return Lived(**read.common, what=read.text("host.what"))


def _stalled(read: _Reader) -> Stalled:
    return Stalled(**read.common, lag_ms=read.number("loop.lag_ms"))


def _lost(read: _Reader) -> Lost:
    return Lost(
        **read.common,
        stream=read.text("telemetry.stream"),
        spans=int(read.number("telemetry.spans")),
    )


_MAKERS: Final[dict[str, Callable[[_Reader], Moment | None]]] = {
    _PREFIX + "era.decide": _decided,
    _PREFIX + "peer.state": _moved,
    _PREFIX + "peer.restart": _restarted,
    _PREFIX + "era.drop": _dropped,
    _PREFIX + "operator": _acted,
    _PREFIX + "config.load": _configured,
    _PREFIX + "host.lifecycle": _lived,
    _PREFIX + "loop.stalled": _stalled,
    _PREFIX + "telemetry.lost": _lost,
}

NAMES: Final = frozenset(_MAKERS)
"""Spans that incidents are made of."""
