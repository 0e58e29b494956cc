"""Whether a call that got no answer may be sent again.

Only "not sent" proves that nothing was executed; anything else needs somebody's word that doing it
twice is harmless. Each lost attempt has one kind, each kind one row, so a new kind of loss is a row
here and never an `if` in the router.

Source: MCP 2026-07-28 basic/utilities/cancellation (a request re-issued after a loss has a new id;
whether it may be re-issued is the host's decision); tool annotations are untrusted unless the
server is (server/tools).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import RetryCalls
    from observant_host.errors import Delivery, Fault, Outcome

MAX_ATTEMPTS: Final = 2
"""One more try: whatever fails twice in a row is not a passing loss."""


class RetryReason(StrEnum):
    NOT_SENT = "not_sent"
    LOST = "lost"
    HEADER_MISMATCH = "header_mismatch"
    SESSION_LOST = "session_lost"
    RATE_LIMITED = "rate_limited"
    INPUT_ROUND = "input_round"


class RetryDenial(StrEnum):
    NOT_IDEMPOTENT = "not_idempotent"
    BUDGET = "budget"
    DEADLINE = "deadline"
    UNAVAILABLE = "unavailable"


class Rule(msgspec.Struct, frozen=True):
    """`executed`: the server may have done it. `repair`: the protocol itself asks for the second
    request, so `retry_calls = "never"` does not forbid it. `counted`: it uses up an attempt."""

    executed: bool
    repair: bool
    counted: bool = True


RULES: Final[Mapping[RetryReason, Rule]] = {
    RetryReason.NOT_SENT: Rule(executed=False, repair=False),
    RetryReason.LOST: Rule(executed=True, repair=False),
    RetryReason.HEADER_MISMATCH: Rule(executed=False, repair=True),
    RetryReason.SESSION_LOST: Rule(executed=False, repair=True),
    RetryReason.RATE_LIMITED: Rule(executed=False, repair=False),
    # capped by the number of input rounds, not by attempts
    RetryReason.INPUT_ROUND: Rule(executed=False, repair=True, counted=False),
}


_LOSSES: Final[Mapping[Delivery, RetryReason]] = {
    "not_sent": RetryReason.NOT_SENT,
    "sent_no_reply": RetryReason.LOST,
}


class Allowed(msgspec.Struct, frozen=True):
    """Send it again, with a new request id."""

    reason: RetryReason


class Denied(msgspec.Struct, frozen=True):
    reason: RetryDenial


def loss_of(outcome: Outcome, *, delivery: Delivery, fault: Fault) -> RetryReason | None:
    """The kind of loss behind a failed attempt, or None where it was no loss but an answer.

    Only the peer's end counts: where the host itself said no (queue full, draining) or policy did,
    a second try would be told the same.
    """
    if outcome != "unavailable" or fault != "peer":
        return None
    return _LOSSES.get(delivery)


def is_harmless_twice(*, is_read: bool, policy: RetryCalls, declared_idempotent: bool) -> bool:
    """Lists and reads always; calls only where policy looks at declarations and one exists.

    `declared_idempotent`: listed in `idempotent_tools`, or annotated so by a server whose
    annotations are trusted.
    """
    return is_read or (policy == "idempotent" and declared_idempotent)


def decide(
    loss: RetryReason,
    *,
    policy: RetryCalls,
    harmless_twice: bool,
    attempts: int,
    remaining_s: float,
    delay_s: float = 0.0,
    routable: bool = True,
) -> Allowed | Denied:
    """May the call be sent again? Safety first, then budget, time, and somebody to send it to.

    `attempts` were made so far; `remaining_s` is left of the caller's deadline; `delay_s` must be
    waited first. `retry_calls = "never"` is a budget of nothing.
    """
    rule = RULES[loss]
    if rule.executed and not harmless_twice:
        return Denied(RetryDenial.NOT_IDEMPOTENT)
    if policy == "never" and not rule.repair:
        return Denied(RetryDenial.BUDGET)
    if rule.counted and attempts >= MAX_ATTEMPTS:
        return Denied(RetryDenial.BUDGET)
    if remaining_s <= delay_s:
        return Denied(RetryDenial.DEADLINE)
    if not routable:
        return Denied(RetryDenial.UNAVAILABLE)
    return Allowed(loss)
