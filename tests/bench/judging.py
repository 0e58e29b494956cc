"""Measured figures against their targets. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from tests.bench.samples import best, noisy, of
from tests.bench.targets import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.samples import Sample


class Verdict(msgspec.Struct, frozen=True):
    """`measured` None: a run that it needs is missing. `noisy`: may be worse than the truth."""

    target: Target
    measured: float | None
    verdict: Literal["met", "missed", "not measured"]
    noisy: bool


def judge(target: Target, samples: Sequence[Sample]) -> Verdict:
    ours = of(samples, target.case, target.way)
    theirs = of(samples, target.case, target.base)
    value = measured(target, ours, theirs)
    if value is None:
        return Verdict(target, None, "not measured", noisy=False)
    held = value >= target.limit if target.at_least else value <= target.limit
    unsure = noisy(ours) or (target.how != "plain" and noisy(theirs))
    return Verdict(target, value, "met" if held else "missed", noisy=unsure)


def measured(target: Target, ours: Sequence[Sample], theirs: Sequence[Sample]) -> float | None:
    value = best(ours, target.figure)
    if value is None or target.how == "plain":
        return value
    base = best(theirs, target.base_figure or target.figure)
    if base is None:
        return None
    if target.how == "added":
        return value - base
    return value / base if base else None
