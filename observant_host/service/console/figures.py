"""A server's figures, as Prometheus would read them at this moment: the same names, with units."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINE: Final = re.compile(r"^observant_host_(\w+)\{([^}]*)\} ([-+.\deE]+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Figure(msgspec.Struct, frozen=True):
    """`value` has its unit in it."""

    label: str
    value: str


_SHOWN: Final[Mapping[str, tuple[str, str, float]]] = {
    "inflight_calls": ("in flight", "call", 1),
    "queued_calls": ("queued", "call", 1),
    "peer_restarts_total": ("restarted", "time", 1),
    "peer_processes": ("its group has", "process", 1),
    "peer_resident_memory_bytes": ("memory", "MiB", 1 / 1024 / 1024),
    "peer_cpu_seconds_total": ("processor time", "s", 1),
    "peer_open_fds": ("open", "file", 1),
}
"""Metric (without its prefix), label, unit, and what makes the one the other."""

_PLURAL: Final = {"call": "calls", "time": "times", "process": "processes", "file": "files"}


def figures_of(server: str, exposition: str) -> tuple[Figure, ...]:
    """In the order above. Source of the format: Prometheus text format 0.0.4."""
    values: dict[str, float] = {}
    outcomes: dict[str, float] = {}
    for line in exposition.splitlines():
        if (match := _LINE.match(line)) is None:
            continue
        labels = dict(_LABEL.findall(match[2]))
        if labels.get("peer") != server:
            continue
        values[match[1]] = float(match[3])
        if match[1] == "calls_total" and float(match[3]):
            outcome = labels.get("outcome", "")
            outcomes[outcome] = outcomes.get(outcome, 0.0) + float(match[3])
    found = [
        Figure(label, _counted(values[name] * factor, unit))
        for name, (label, unit, factor) in _SHOWN.items()
        if name in values
    ]
    return (*found, *_mean(values), *_by_outcome(outcomes))


def _mean(values: Mapping[str, float]) -> tuple[Figure, ...]:
    count = values.get("call_duration_seconds_count", 0.0)
    if not count:
        return ()
    mean_ms = values.get("call_duration_seconds_sum", 0.0) / count * 1000
    return (Figure("mean duration", f"{_number(mean_ms)} ms"),)


def _by_outcome(outcomes: Mapping[str, float]) -> tuple[Figure, ...]:
    return tuple(
        Figure(f"ended {outcome}", _counted(count, "call"))
        for outcome, count in sorted(outcomes.items())
    )


def _counted(value: float, unit: str) -> str:
    return f"{_number(value)} {unit if value == 1 else _PLURAL.get(unit, unit)}"


def _number(value: float) -> str:
    """At most one digit behind the point, and none where it says nothing."""
    return f"{value:.1f}".removesuffix(".0") if value < 99.5 else f"{value:.0f}"
