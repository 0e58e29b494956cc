"""What was measured, and what may be read from it. Pure.

Another program on the machine adds to some runs and takes from none: so the best round of each is
compared with the best of the other, and never a mean.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ENOUGH_ROUNDS = 7
"""With fewer, minima of two programs still differ by chance."""
QUIET = 0.15
"""Share of the machine that others may have in half of the rounds; with more it is noise."""
DIGITS = 4
"""Significant digits kept: more would be the clock's."""

HIGHER_IS_BETTER = ("calls_s", "rate")


class Sample(msgspec.Struct, frozen=True):
    """One run. `others`: the share of the machine's CPU that went to neither it nor its servers."""

    case: str
    way: str
    round: int
    figures: dict[str, float]
    others: float = 0.0


def rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.{DIGITS}g}") for name, value in figures.items()}


def rotated(ways: Sequence[str], number: int) -> list[str]:
    """Each round begins with another one, so that none has always the same neighbour before it."""
    start = number % len(ways)
    return [*ways[start:], *ways[:start]]


def of(samples: Iterable[Sample], case: str, way: str) -> list[Sample]:
    return [one for one in samples if (one.case, one.way) == (case, way)]


def best(samples: Iterable[Sample], figure: str) -> float | None:
    """The least of all rounds, or the most where more is better; None where none has it."""
    found = [one.figures[figure] for one in samples if figure in one.figures]
    if not found:
        return None
    return max(found) if figure.startswith(HIGHER_IS_BETTER) else min(found)


def noisy(samples: Sequence[Sample]) -> bool:
    """Too few rounds, or half of them beside other work: the figure may be worse than the truth."""
    return len(samples) < ENOUGH_ROUNDS or median(one.others for one in samples) > QUIET
