"""How long `incidents` takes over a large record: figures only, no judgement.

python -m tests.bench.incidents [SPANS]     default 1,000,000
"""

from __future__ import annotations

import gzip
import resource
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from observant_host.incidents.answer import INDEX_NAME, Question, Sources, incidents
from observant_host.telemetry.finished import Finished
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.otlp_json import OtlpJson
from observant_host.telemetry.propagation import TraceContext, new_span_id, new_trace_id
from observant_host.telemetry.recorder import LINE
from observant_host.telemetry.vocabulary import (
    EraDecide,
    EraDropped,
    PeerRestart,
    PeerStateChanged,
    Request,
    RoutedCall,
    TelemetryLost,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from observant_host.telemetry.vocabulary import Fact

PEERS = 50
SECOND = 1_000_000_000
START = 1_760_000_000 * SECOND
SEGMENT = 20_000
"""Spans of one file: the 16 MiB at which the recorder rotates."""
LIFE = 1_987
"""Calls between two restarts of a server."""
EVIDENCE = {"step": "discover", "outcome": "ok", "elapsed_ms": 12.0, "timeout_ms": 30000.0}


def facts(spans: int) -> Iterator[tuple[str, Fact, str]]:
    """(stream, fact, outcome): calls with their requests, and now and then a restart."""
    yield "decisions", TelemetryLost(stream="traces", spans=0), "ok"
    made = calls = 0
    while made < spans:
        peer = f"server-{calls % PEERS}"
        outcome = "timeout" if calls % 97 == 0 else "ok"
        yield "traces", Request(peer=peer, method="tools/call", era="modern", target="x"), outcome
        call = RoutedCall(name=f"{peer}/x", method="tools/call", peer=peer, era="modern")
        yield "traces", call, outcome
        calls, made = calls + 1, made + 2
        if calls % LIFE == 0:
            for fact in _restart(peer, calls):
                made += 1
                yield "decisions", fact, "ok"


def _restart(peer: str, generation: int) -> Iterator[Fact]:
    yield EraDropped(peer=peer, generation=generation, era="modern", why="exit")
    yield PeerRestart(peer=peer, reason="exit", generation=generation, attempt=1, backoff_ms=500)
    for state, cause in (("backoff", "process"), ("ready", None)):
        if state == "ready":
            yield EraDecide(
                peer=peer,
                generation=generation + 1,
                trigger="restart",
                previous="modern",
                selected="modern",
                reason="discover_ok",
                server_version="1",
                evidence=(EVIDENCE,),
            )
        yield PeerStateChanged(
            peer=peer,
            previous="",
            state=state,
            cause=cause,
            reason="",
            detail="",
            time_in_previous_ms=1.0,
            generation=generation,
        )


def write(folder: Path, spans: int) -> int:
    """A record of that many spans, rotated and compressed as the recorder does; its bytes."""
    resource_of = {"service.instance.id": "bench", "service.version": "0"}
    encoder = OtlpJson(resource_of, version="0", cleaner=Cleaner(Masker()))
    waiting: dict[str, list[tuple[bytes]]] = {"decisions": [], "traces": []}
    size = number = 0
    for number, (stream, fact, outcome) in enumerate(facts(spans)):
        context = TraceContext(new_trace_id(), new_span_id())
        now = START + number * SECOND // 50
        done = Finished(fact, context, outcome=outcome, start_ns=now, duration_ns=1_000_000)
        waiting[stream].append((encoder.span(done),))
        if len(waiting[stream]) == SEGMENT:
            size += _segment(folder / stream, number, waiting[stream], encoder, packed=True)
    return size + sum(
        _segment(folder / stream, number, rest, encoder, packed=False)
        for stream, rest in waiting.items()
    )


def _segment(
    folder: Path, number: int, spans: list[tuple[bytes]], encoder: OtlpJson, *, packed: bool
) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    each = LINE if folder.name == "traces" else 1
    parts = [spans[start : start + each] for start in range(0, len(spans), each)]
    data = b"".join(chain.from_iterable(map(encoder.pieces_of, parts)))
    spans.clear()
    name = f"20251009T000000.{number:09d}Z-1.jsonl"
    path = folder / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(data, 6) if packed else data)
    return len(data)


def main() -> int:
    spans = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write(folder, spans)
        print(f"{spans:,} spans, {size / 1e6:.0f} MB of OTLP JSON lines, {PEERS} servers")
        sources = Sources(state_dirs=(folder,), index=folder / INDEX_NAME)
        everything = Question(since_ns=0, until_ns=2**62)
        last_day = Question(since_ns=START + (spans // 50 - 3600) * SECOND, until_ns=2**62)
        for what, question in (
            ("first answer, index built", everything),
            ("everything, indexed", everything),
            ("the last hour, indexed", last_day),
            ("one server, indexed", Question(since_ns=0, until_ns=2**62, server="server-7")),
        ):
            began, busy = time.perf_counter(), time.process_time()
            found = incidents(sources, question)
            took, busy = time.perf_counter() - began, time.process_time() - busy
            print(f"{what}: {took:.2f} s ({busy:.2f} s CPU), {len(found['incidents'])} incidents")
        print(f"index: {(folder / INDEX_NAME).stat().st_size / 1e6:.0f} MB")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory of the process: {peak:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
