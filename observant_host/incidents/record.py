"""The reading side of the record: decisions in order, and one trace as a tree.

Reads what `telemetry.recorder` wrote, and what any collector's file exporter writes in OTLP JSON:
plain and compressed files of several hosts' folders, merged. A torn last line, or any line that
is none, is skipped. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.incidents.moments import evidence_of, iso_time
from observant_host.incidents.otlp import RecordedSpan, spans_of_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

_ERA: Final = "observant_host.era."
_REASON: Final = _ERA + "reason"
_PEER: Final = "observant_host.peer.name"
_DECIDE: Final = "observant_host.era.decide"

MAX_TRACE_SPANS: Final = 10_000
"""Spans of one trace that are read into a tree: more than a person can look at."""


class TraceNode(msgspec.Struct):
    """A span of a trace with what happened inside it, in order of time."""

    span: RecordedSpan
    children: list[TraceNode] = []


def read_decisions(
    state_dirs: Sequence[Path], *, server: str | None = None, since_ns: int | None = None
) -> list[dict[str, Any]]:
    """Era decisions of all folders, oldest first, as `explain --json` shows them.

    Each: time (ISO 8601, UTC), server, direction, expected, from, to, version, reason,
    generation, evidence (list of objects), trace_id.
    """

    def asked_for(span: RecordedSpan) -> bool:
        return (
            span.name == _DECIDE
            and _REASON in span.attributes  # else it was cancelled before it decided anything
            and (server is None or span.attributes.get(_PEER) == server)
            and (since_ns is None or span.end_ns >= since_ns)
        )

    found = _read(state_dirs, ("decisions",), b'"' + _DECIDE.encode() + b'"', asked_for)
    return [_decision(span) for span in sorted(found, key=lambda span: span.end_ns)]


def read_timeline(
    state_dirs: Sequence[Path], *, server: str | None = None, since_ns: int | None = None
) -> list[RecordedSpan]:
    """Every decision (eras, states, restarts, names, operators' acts), oldest first."""

    def asked_for(span: RecordedSpan) -> bool:
        return (server is None or span.attributes.get(_PEER) == server) and (
            since_ns is None or span.end_ns >= since_ns
        )

    found = _read(state_dirs, ("decisions",), b"", asked_for)
    return sorted(found, key=lambda span: (span.start_ns, span.end_ns))


def decision_lines(state_dir: Path, *, since_ns: int) -> Iterator[bytes]:
    """Whole lines of the decisions that ended since then, as they were recorded."""
    for path in sorted((state_dir / "decisions").glob("*.jsonl*")):
        for line in _lines_of(path):
            spans = list(spans_of_line(line))
            if line.endswith(b"\n") and any(span.end_ns >= since_ns for span in spans):
                yield line


def read_trace(state_dirs: Sequence[Path], trace_id: str) -> list[TraceNode]:
    """The spans of one trace as trees, roots in order of time; empty where nothing is recorded.

    A span whose parent is not in the record (a caller's own, or forgotten by now) is a root.
    """
    wanted = trace_id.lower()
    found: dict[str, RecordedSpan] = {}
    streams = ("decisions", "traces")
    for span in _read(state_dirs, streams, wanted.encode(), lambda s: s.trace_id == wanted):
        if len(found) < MAX_TRACE_SPANS:
            found[span.span_id] = span
    return _forest(found)


def render_trace(roots: Iterable[TraceNode]) -> str:
    """The tree for people: indent, name, duration, outcome, and the server where it changes."""
    lines: list[str] = []
    todo = [(root, 0, "") for root in reversed(list(roots))]
    while todo:
        node, depth, around = todo.pop()
        peer = str(node.span.attributes.get(_PEER, ""))
        lines.append("  " * depth + _told(node.span, peer if peer != around else "") + "\n")
        todo += ((child, depth + 1, peer or around) for child in reversed(node.children))
    return "".join(lines)


def _told(span: RecordedSpan, peer: str) -> str:
    outcome = str(span.attributes.get("observant_host.outcome", ""))
    error = span.attributes.get("error.type")
    told = f"{outcome} ({error})" if error and error != outcome else outcome
    where = f" [{peer}]" if peer else ""
    return f"{span.name}{where}  {(span.end_ns - span.start_ns) / 1e6:.1f} ms  {told}".rstrip()


def _forest(spans: dict[str, RecordedSpan]) -> list[TraceNode]:
    nodes = {span_id: TraceNode(span) for span_id, span in spans.items()}
    roots = []
    for span_id, node in sorted(nodes.items(), key=lambda item: item[1].span.start_ns):
        parent = nodes.get(node.span.parent_id)
        if parent is None or node.span.parent_id == span_id:
            roots.append(node)
        else:
            parent.children.append(node)
    return roots


def _decision(span: RecordedSpan) -> dict[str, Any]:
    era = {
        key.removeprefix(_ERA): value
        for key, value in span.attributes.items()
        if key.startswith(_ERA)
    }
    return {
        "time": iso_time(span.end_ns),
        "server": span.attributes.get(_PEER),
        "direction": era.get("direction", "none"),
        "expected": era.get("expected", True),
        "from": era.get("previous", "unknown"),
        "to": era.get("selected", "unknown"),
        "version": span.attributes.get("mcp.protocol.version"),
        "reason": era.get("reason", ""),
        "detail": era.get("detail", ""),
        "generation": span.attributes.get("observant_host.peer.generation", 0),
        "evidence": [
            evidence_of(attributes) for name, attributes in span.events if name == "evidence"
        ],
        "trace_id": span.trace_id,
    }


def _read(
    state_dirs: Sequence[Path],
    streams: tuple[str, ...],
    needle: bytes,
    keep: Callable[[RecordedSpan], bool],
) -> Iterator[RecordedSpan]:
    """Spans that `keep` wants; only lines that contain `needle` are decoded."""
    for folder in state_dirs:
        for stream in streams:
            for path in sorted((folder / stream).glob("*.jsonl*")):
                for line in _lines_of(path):
                    if needle in line:
                        yield from filter(keep, spans_of_line(line))


def _lines_of(path: Path) -> Iterator[bytes]:
    """Lines of a plain or compressed file; ends early where a file is cut off or went away."""
    opener = gzip.open if path.suffix == ".gz" else open
    if path.suffix not in (".gz", ".jsonl"):
        return
    try:
        with opener(path, "rb") as lines:
            yield from lines
    except (OSError, EOFError, zlib.error):
        return
