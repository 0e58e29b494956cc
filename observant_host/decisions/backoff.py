"""How long to wait before the next try: exponential, capped, with jitter over the upper half.

Jitter spreads the restarts of many servers that fell together, where a fixed delay would bring
them back in step. Half of the delay is certain: without a floor a few low draws in a row would ask
a failing server again at once.
"""

from __future__ import annotations

from typing import Final

MAX_DOUBLINGS: Final = 64
"""2**64 times any sensible first delay is over every maximum; more would only overflow a float."""


def ceiling(attempt: int, *, initial_s: float, maximum_s: float) -> float:
    """The longest delay, in seconds, before try number `attempt` (1 is the first retry).

    `initial_s` for the first, doubled for each further one, never over `maximum_s`.
    """
    doublings = min(max(attempt - 1, 0), MAX_DOUBLINGS)
    return min(maximum_s, initial_s * 2.0**doublings)


def delay(attempt: int, *, initial_s: float, maximum_s: float, random_0_1: float) -> float:
    """Seconds to wait before try number `attempt`: evenly spread from half of `ceiling` to all.

    `random_0_1` is the caller's random number in [0, 1).
    """
    return ceiling(attempt, initial_s=initial_s, maximum_s=maximum_s) * (1 + random_0_1) / 2
