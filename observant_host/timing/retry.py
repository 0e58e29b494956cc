"""The one loop that does something again: what to do is a decision's, the waiting is observed.

There is no other loop of this kind in the host, so every repetition, and every refusal to repeat,
is in the metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from observant_host.telemetry.vocabulary import RetryDenied, RetryScheduled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock

T = TypeVar("T")


class Again(msgspec.Struct, frozen=True):
    """Do it again after `delay_s`, because of `reason` (a retry reason of the vocabulary)."""

    reason: str
    delay_s: float


class Denied(msgspec.Struct, frozen=True):
    """It could be done again, but must not be: `reason` says why."""

    reason: str


async def retrying(
    act: Callable[[int], Awaitable[T]],
    decide: Callable[[Exception, int], Again | Denied | None],
    *,
    clock: Clock,
    telemetry: Telemetry,
    peer: str,
) -> T:
    """`act(attempt)`, attempts counted from 1, until it succeeds or `decide` no longer says Again.

    decide(error, attempt): None where there is nothing to repeat. Raises the last error.
    """
    attempt = 1
    while True:
        try:
            return await act(attempt)
        except Exception as error:
            match decide(error, attempt):
                case Again(reason, delay_s):
                    attempt += 1
                    telemetry.count(
                        RetryScheduled(
                            peer=peer, reason=reason, attempt=attempt, delay_ms=delay_s * 1000
                        )
                    )
                case Denied(reason):
                    telemetry.count(RetryDenied(peer=peer, reason=reason))
                    raise
                case _:
                    raise
        await clock.sleep(delay_s)
