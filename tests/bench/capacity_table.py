"""What an operator asks, answered from what was measured. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.rendering import NONE, number
from tests.bench.samples import best, of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.bench.samples import Sample

MILLION = 1_000_000
STATES = {"metrics": "metrics only", "on": "fully on"}


def table(samples: Sequence[Sample]) -> str:
    lines = ["| question | answer |", "| --- | --- |"]
    for question, answer in QUESTIONS.items():
        lines.append(f"| {question} | {answer(samples) or 'not measured'} |")
    return "\n".join(lines)


def highest(samples: Sequence[Sample], state: str) -> Sample | None:
    """The run that reached the highest rate: its other figures belong to that rate."""
    runs = [one for one in of(samples, "capacity-rate", state) if one.figures.get("rate")]
    return max(runs, key=lambda one: one.figures["rate"], default=None)


def rates(samples: Sequence[Sample]) -> str:
    return _of_states(
        samples,
        lambda one: (
            f"{number(one['calls_s_core'])} ({number(one['rate'])} calls/s on "
            f"{number(one['cores'])} of a core)"
        ),
    )


def twice(samples: Sequence[Sample]) -> str:
    def said(one: dict[str, float]) -> str:
        return (
            f"{number(one['twice_calls_s'])} calls/s answered, "
            f"p50 {number(one['twice_p50_ms'])} ms, p99 {number(one['twice_p99_ms'])} ms, "
            f"{number(one['twice_refused'])} refused; "
            f"p99 {number(one['after_p99_ms'])} ms afterwards"
        )

    return _of_states(samples, said)


def _of_states(samples: Sequence[Sample], said: Callable[[dict[str, float]], str]) -> str:
    found = {state: highest(samples, state) for state in STATES}
    return "; ".join(
        f"{STATES[state]}: {said(one.figures)}" for state, one in found.items() if one is not None
    )


def a_server(samples: Sequence[Sample]) -> str:
    """Memory of the host by server, and its CPU a server, from one server to many."""
    ways = sorted({one.way for one in samples if one.case == "growth-servers"}, key=int)
    if len(ways) < 2:
        return ""
    few, many = ways[0], ways[-1]
    each = {
        figure: _slope(samples, figure, few, many) for figure in ("memory_mib", "idle_cpu_ms_s")
    }
    kib = number(each["memory_mib"] * 1024)
    cpu = number(max(each["idle_cpu_ms_s"], 0.0))
    return f"{kib} KiB of the host, {cpu} ms of CPU a second (from {few} to {many} servers)"


def _slope(samples: Sequence[Sample], figure: str, few: str, many: str) -> float:
    low, high = (best(of(samples, "growth-servers", way), figure) or 0.0 for way in (few, many))
    return (high - low) / (int(many) - int(few))


def most(samples: Sequence[Sample]) -> str:
    runs = [one.figures for one in samples if one.case == "capacity-servers"]
    if not runs:
        return ""
    one = runs[-1]
    return (
        f"{number(one['servers'])} tried: ready in {number(one['ready_ms'] / 1000)} s, the host "
        f"then has {number(one['memory_mib'])} MiB; five open files each"
    )


def scrapes(samples: Sequence[Sample]) -> str:
    ways = dict.fromkeys(one.way for one in samples if one.case == "growth-scrape")
    runs = (of(samples, "growth-scrape", way) for way in ways)
    return ", ".join(
        f"{number(best(run, 'series') or 0)} series in {number(best(run, 'scrape_ms') or 0)} ms"
        for run in runs
    )


def disk(samples: Sequence[Sample]) -> str:
    runs = of(samples, "capacity-disk", "on")
    packed, plain = best(runs, "packed_bytes_a_call"), best(runs, "bytes_a_call")
    if packed is None or plain is None:
        return ""
    mib = MILLION / (1 << 20)
    return f"{number(packed * mib)} MiB, once compressed ({number(plain * mib)} MiB as written)"


def starts(samples: Sequence[Sample]) -> str:
    found = {way: best(of(samples, "capacity-start", way), "ready_ms") for way in ("cold", "warm")}
    cold, warm = (NONE if ms is None else f"{number(ms / 1000)} s" for ms in found.values())
    return "" if {cold, warm} == {NONE} else f"{cold} / {warm}"


QUESTIONS = {
    "calls/s a core with at most 5 ms of added p99, to a stdio server": rates,
    "at twice that rate": twice,
    "an idle server": a_server,
    "most servers on a host": most,
    "series, and one scrape": scrapes,
    "disk a million calls, with every trace recorded": disk,
    "start of `run` with 10 servers until ready, without and with compiled bytecode": starts,
}
