"""How long to wait before the next try: exponential, capped, with full jitter.

Full jitter spreads the restarts of many servers that fell together over the whole interval, where
a fixed or narrow delay would bring them back in step.
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
    """Seconds to wait before try number `attempt`: evenly spread over 0 to `ceiling`.

    `random_0_1` is the caller's random number in [0, 1); 0 gives the lower bound 0.0, the upper
    bound is never passed.
    """
    return ceiling(attempt, initial_s=initial_s, maximum_s=maximum_s) * random_0_1
