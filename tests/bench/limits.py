"""The gate's table: what each figure was, what it may be, and whether it holds. Pure.

`limits.toml` is written by `python -m tests.bench.gate --renew`: a change that makes a call cheaper
lowers its limits in the same commit, one that makes it dearer has to say so there.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD = """\
# What a call may cost, and what it did when this was written. Written by
#   python -m tests.bench.gate --renew
"""
COUNTED_ROOM, COUNTED_MORE = 1.08, 1.0
"""Counts are the same on every machine, but for the loop's turns: how many lines one brings, and
what timers do meanwhile."""
RATIO_ROOM = 2.0
"""Minimum over minimum repeats within a tenth on an idle machine, not on one that builds."""
BARE = "to bare"
"""Ends the names of figures that are ratios to what does the least."""


class Limit(msgspec.Struct, frozen=True):
    measured: float
    limit: float


def read(text: str) -> dict[str, Limit]:
    return msgspec.convert(tomllib.loads(text), dict[str, Limit])


def written(figures: Mapping[str, float]) -> str:
    """The table for these figures."""
    lines = [HEAD]
    for name, value in figures.items():
        room = value * RATIO_ROOM if BARE in name else value * COUNTED_ROOM + COUNTED_MORE
        lines.append(f'["{name}"]\nmeasured = {value:.4g}\nlimit = {room:.4g}\n')
    return "\n".join(lines)


def broken(limits: Mapping[str, Limit], figures: Mapping[str, float]) -> list[str]:
    """A sentence for each figure above its limit, without one, and for each limit not measured."""
    found = [f"{name}: not measured" for name in limits if name not in figures]
    for name, value in figures.items():
        if name not in limits:
            found.append(f"{name}: {value:.4g}, and limits.toml has no limit for it")
        elif value > limits[name].limit:
            kept = limits[name]
            found.append(
                f"{name}: {value:.4g}, at most {kept.limit:.4g} (it was {kept.measured:.4g})"
            )
    return found
