"""Incidents in words: for a terminal, and as Markdown for the review. From the JSON alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.cli.output import printable
from observant_host.cli.words import evidence_line, moment
from observant_host.decisions.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Json = Mapping[str, Any]
    Line = tuple[str, str]
    """(label, text); the label "" continues the one before."""

KINDS: Final = {
    "downgrade": "legacy was spoken",
    "outage": "it did not work",
    "refusal": "it waits for a person",
}
UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def head(document: Json) -> str:
    """One line about the whole answer."""
    found = counted(len(document["incidents"]), "incident")
    between = f"between {moment(document['since'])} and {moment(document['until'])}"
    hosts = counted(len(document["hosts"]), "host")
    return f"{found} {between}, in the record of {hosts}; {losses(document)}"


def losses(document: Json) -> str:
    """What the record lacks of that time."""
    lost = document["telemetry_lost"]
    parts = [
        "how much telemetry was lost is not known"
        if lost is None
        else f"{counted(lost, 'span')} lost"
    ]
    if document.get("unreadable"):
        parts.append(f"{counted(document['unreadable'], 'line')} of the record unreadable")
    if not document.get("complete", True):
        parts.append("not everything was read: ask for a shorter time")
    return ", ".join(parts)


def title(incident: Json) -> str:
    """What it is, and why, as sure as that is."""
    what = f"{str(incident['kind']).upper()} of {incident['server']}"
    return f"{what}: {incident['class']} ({incident['confidence']} confidence)"


def as_allowed(incident: Json) -> bool:
    """Whether an old server is spoken to in its revision from the first on, as a person allowed:
    on the record, and nobody's fault."""
    first = incident["kind"] == "downgrade" and incident["from"] == "unknown"
    return first and incident["class"] == "allowance" and bool(incident["expected"])


def allowed_line(incidents: Sequence[Json]) -> str:
    """All of those in one sentence."""
    each = ", ".join(f"{one['server']} ({one['version']}, {_when(one)})" for one in incidents)
    return (
        f"Nothing went wrong with {counted(len(incidents), 'old server')} spoken to as allowed: "
        f"{each}. `observant-host incidents --server NAME` tells all about one."
    )


def lines(incident: Json) -> Iterator[Line]:
    """Everything about one incident."""
    yield "when", _when(incident)
    yield "what", _what(incident)
    if incident["detail"]:
        yield "", printable(incident["detail"])
    yield from _labelled("why", incident["why"])
    yield from _labelled("evidence", [evidence_line(one) for one in incident["evidence"]])
    yield from _labelled("just before", incident["before"])
    yield "calls", _calls(incident)
    yield "times", _times(incident)
    if incident["timeout"]:
        yield "timeout", incident["timeout"]
    lost = incident["telemetry_lost"]
    yield "lost", "not known" if lost is None else f"{counted(lost, 'span')} in that time"
    yield "seen by", ", ".join(incident["witnesses"])
    yield "traces", ", ".join(incident["trace_ids"][:3]) or "none"


def _labelled(label: str, texts: Sequence[str]) -> Iterator[Line]:
    for number, text in enumerate(texts):
        yield ("" if number else label), printable(text)


def _when(incident: Json) -> str:
    start = moment(incident["start"])
    times = f", {incident['times']} times" if incident["times"] > 1 else ""
    if incident["end"] is None:
        return f"since {start}, it lasts{times}"
    return f"{start} to {moment(incident['end'])}{times}"


def _what(incident: Json) -> str:
    chosen = str(incident["to"])
    if incident["version"] and chosen != "unknown":
        chosen += f" {incident['version']}"
    era = f"{incident['from']} -> {chosen}" if chosen != "unknown" else f"was {incident['from']}"
    because = f", reason {incident['reason']}" if incident["reason"] else ""
    trigger = f", after {incident['trigger']}" if incident["trigger"] else ""
    unexpected = "" if incident["expected"] else ", NOT EXPECTED"
    return f"{KINDS[incident['kind']]}: {era}{because}{trigger}{unexpected}"


def _calls(incident: Json) -> str:
    total = sum(incident["calls"].values())
    during = "in the legacy era" if incident["kind"] == "downgrade" else "while it lasted"
    if not total:
        return f"none {during}"
    each = ", ".join(f"{count} {outcome}" for outcome, count in incident["calls"].items())
    return f"{total} {during}: {each}"


def _times(incident: Json) -> str:
    parts = [f"noticed after {span(incident['noticed_s'])}"]
    if incident["acted_s"] is not None:
        parts.append(f"a person acted after {span(incident['acted_s'])}")
    if incident["healed_s"] is not None:
        parts.append(f"well again after {span(incident['healed_s'])}")
    elif incident["end"] is not None:
        parts.append(f"ended as {incident['ended_as']}")
    else:
        parts.append("goes on, as allowed" if as_allowed(incident) else "not well yet")
    return ", ".join(parts)


def span(seconds: float) -> str:
    """ "0.3 s", "12 s", "4 min", "3 h"."""
    for size, unit in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def markdown(document: Json) -> str:
    """The report for a review: one section an incident."""
    parts = ["# Incidents", "", _escaped(head(document)) + ".", ""]
    for incident in document["incidents"]:
        parts += [f"## {_escaped(title(incident))}", "", f"`{incident['id']}`", ""]
        for label, text in lines(incident):
            lead = f"- **{label}**: " if label else "  - "
            parts.append(lead + _escaped(text))
        parts += ["", "What we change so that it does not come again: …", ""]
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """Text that a server may have written, as Markdown that shows it and does nothing else."""
    return "".join(f"\\{c}" if c in "\\`*_<>[]|#" else c for c in text)
