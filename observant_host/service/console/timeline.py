"""What happened, newest first, in sentences: decisions, restarts, people's acts, and incidents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.words import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

PAGE: Final = 50
"""Entries a page: what a person reads before narrowing it down."""

_P: Final = "observant_host."


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` is a word for what it is, `weight` one of "", "decision", "outage", "good": how much
    it matters. `times` counts equal ones that came one after the other; `time` is the last's."""

    time: str
    kind: str
    title: str
    detail: str = ""
    server: str = ""
    weight: str = ""
    trace_id: str = ""
    key: str = ""
    times: int = 1


class Page(msgspec.Struct, frozen=True):
    """`number` counts from 1; all pages of one reading show what there was at `until`."""

    entries: tuple[Entry, ...]
    number: int
    until: str
    has_more: bool


def entry_of(decision: Mapping[str, Any]) -> Entry | None:
    """Of one of `recent` of /api/v1/decisions; None where it says nothing to a person."""
    told = _TOLD.get(str(decision["name"]))
    found = told(_Said(decision["attributes"])) if told is not None else None
    if found is None:
        return None
    kind, weight, title, detail = found
    return Entry(
        time=str(decision["time"]),
        kind=kind,
        title=title,
        detail=detail,
        server=decision["server"] or "",
        weight=weight,
        trace_id=decision["trace_id"],
        key=decision["span_id"],
    )


def incident_entry(incident: Mapping[str, Any]) -> Entry:
    """Of one of `incidents` of /api/v1/incidents, at its end, or its beginning while it lasts."""
    over = incident.get("end")
    calls = ", ".join(f"{count} {outcome}" for outcome, count in incident["calls"].items())
    why = "; ".join(incident["why"])
    lasted = f"from {incident['start']} to {over}" if over else f"since {incident['start']}"
    return Entry(
        time=str(over or incident["start"]),
        kind="incident",
        title=f"{incident['kind']}, {incident['class']} ({incident['confidence']} confidence)",
        detail=f"{lasted}: {why}" + (f"; calls meanwhile: {calls}" if calls else ""),
        server=str(incident["server"]),
        weight="good" if over else "outage",
        trace_id=next(iter(incident["trace_ids"]), ""),
        key=str(incident["id"]),
    )


def paged(entries: Iterable[Entry], *, number: int = 1, until: str = "", limit: int = PAGE) -> Page:
    """Newest first, what a server did again and again as one; `until` "" is now."""
    ordered = sorted(entries, key=_position, reverse=True)
    last = until or (_utc(ordered[0].time) if ordered else "")
    folded = _folded([one for one in ordered if _utc(one.time) <= last])
    begin = (max(1, number) - 1) * limit
    shown = tuple(folded[begin : begin + limit])
    return Page(shown, max(1, number), last, len(folded) > begin + limit)


def _folded(entries: Sequence[Entry]) -> list[Entry]:
    """Of one server's equal entries in a row the newest, with how many there were."""
    found: list[Entry] = []
    last: dict[str, int] = {}
    for one in entries:
        at = last.get(one.server)
        if at is not None and _same(found[at], one):
            found[at] = msgspec.structs.replace(found[at], times=found[at].times + 1)
            continue
        last[one.server] = len(found)
        found.append(one)
    return found


def _same(one: Entry, other: Entry) -> bool:
    return (one.kind, one.title, one.server) == (other.kind, other.title, other.server)


def _position(entry: Entry) -> tuple[str, str]:
    return _utc(entry.time), entry.key


def _utc(time: str) -> str:
    try:
        return datetime.fromisoformat(time).astimezone(UTC).isoformat(timespec="milliseconds")
    except ValueError:
        return time


class _Said:
    """Attributes of a decision by their last words; "" for what is not there."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self._attributes = attributes

    def __getitem__(self, name: str) -> str:
        value = self._attributes.get(name, self._attributes.get(_P + name))
        return "" if value is None else str(value)

    def is_true(self, name: str) -> bool:
        return self._attributes.get(_P + name) is True


_Told = tuple[str, str, str, str] | None


def _era(said: _Said) -> _Told:
    chosen = f"{said['era.selected']} {said['mcp.protocol.version']}".strip()
    refused = said["era.selected"] == "unknown"
    direction = said["era.direction"]
    unexpected = "" if said.is_true("era.expected") else ", not expected"
    weight = "decision" if direction == "downgrade" or unexpected else ""
    title = (
        f"no era chosen: {said['era.reason']}{unexpected}"
        if refused
        else f"{said['era.previous']} → {chosen}: {said['era.reason']} ({direction}{unexpected})"
    )
    return "era", weight, title, said["era.detail"]


_STATE_WEIGHT: Final[Mapping[str, str]] = {
    "ready": "good",
    "backoff": "outage",
    "unavailable": "outage",
    "degraded": "outage",
}
_DECISIONS: Final = frozenset({"policy", "auth", "config"})


def _state(said: _Said) -> _Told:
    state, cause = said["state.state"], said["state.cause"]
    weight = "decision" if cause in _DECISIONS else _STATE_WEIGHT.get(state, "")
    because = f" ({cause})" if cause else ""
    return "state", weight, f"{said['state.previous']} → {state}{because}", said["state.detail"]


def _restart(said: _Said) -> _Told:
    code = f", exit code {said['restart.exit_code']}" if said["restart.exit_code"] else ""
    after = f"{float(said['restart.backoff_ms'] or 0) / 1000:.1f} s"
    end = "given up" if said.is_true("restart.gave_up") else f"the next life begins after {after}"
    return (
        "restart",
        "outage",
        f"life {said['peer.generation']} ended: {said['restart.reason']}{code}",
        end,
    )


def _operator(said: _Said) -> _Told:
    why = said["operator.reason"]
    title = f"{said['operator.principal'] or 'somebody'} did {said['operator.verb']}"
    return "act", "", f"{title}: {why}" if why else title, said["operator.detail"]


def _host(said: _Said) -> _Told:
    return "host", "", said["host.what"].replace("_", " "), said["host.detail"]


def _config(said: _Said) -> _Told:
    ok = said.is_true("config.successful")
    title = "configuration loaded" if ok else "configuration refused"
    return "config", "" if ok else "decision", title, said["config.detail"] or said["config.hash"]


def _name(said: _Said) -> _Told:
    """Many at once, when a server is new: they are told as one, with the last name."""
    return "name", "", f"name {said['name.what']}", f"{said['name.name']}: {said['name.reason']}"


def _dropped(said: _Said) -> _Told:
    return "era", "", f"era {said['peer.era']} dropped", said["era.dropped_because"]


def _watchdog(said: _Said) -> _Told:
    verdict = said["watchdog.verdict"]
    weight = "good" if verdict == "ok" else "outage"
    return "watchdog", weight, f"watchdog: {verdict}", said["watchdog.detail"]


def _lost(said: _Said) -> _Told:
    if said["telemetry.spans"] in ("", "0"):
        return None
    return "telemetry", "outage", f"{said['telemetry.spans']} spans lost", said["telemetry.stream"]


def _stalled(said: _Said) -> _Told:
    lag = milliseconds(float(said["loop.lag_ms"] or 0))
    return "host", "outage", f"the event loop stood still for {lag}", ""


def _gap(said: _Said) -> _Told:
    gap = milliseconds(float(said["subscription.gap_s"] or 0) * 1000)
    return "stream", "", f"a gap of {gap} in its stream was healed", ""


_TOLD: Final[Mapping[str, Callable[[_Said], _Told]]] = {
    f"{_P}era.decide": _era,
    f"{_P}era.drop": _dropped,
    f"{_P}peer.state": _state,
    f"{_P}peer.restart": _restart,
    f"{_P}operator": _operator,
    f"{_P}host.lifecycle": _host,
    f"{_P}config.load": _config,
    f"{_P}name.decide": _name,
    f"{_P}watchdog.check": _watchdog,
    f"{_P}telemetry.lost": _lost,
    f"{_P}loop.stalled": _stalled,
    f"{_P}subscription.gap": _gap,
}
