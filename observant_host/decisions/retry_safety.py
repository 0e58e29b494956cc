"""Whether a call that got no answer may be sent again.

Only "not sent" and a refusal before the work (429) prove that nothing was executed; anything else
needs somebody's word that doing it twice is harmless. Each lost attempt has one kind, each kind one
row, so a new kind of loss is a row here and never an `if` in the router.

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

AGAIN_S: Final = 0.25
"""Before another try at a server that still seems to be there: whether it is shows meanwhile."""

PAUSE_S: Final = 1.0
"""For a server that limits its rate and does not say how long to wait."""
PAUSE_MOST_S: Final = 3600.0
"""One call an hour is no load, and a slip in a server's clock must not switch it off."""


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
    request, so `retry_calls = "never"` does not forbid it. `counted`: it uses up an attempt, and
    one of the server's budget of retries."""

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


def loss_of(
    outcome: Outcome, *, delivery: Delivery, fault: Fault, rate_limited: bool = False
) -> RetryReason | None:
    """The kind of loss behind a failed attempt, or None where it was no loss but an answer.

    Only the peer's end counts: where the host itself said no (queue full, draining) or policy did,
    a second try would be told the same. So would one that is held back because another call was
    told to wait (`rate_limited`, "not_sent").
    """
    if outcome != "unavailable" or fault != "peer":
        return None
    if rate_limited:
        return RetryReason.RATE_LIMITED if delivery == "replied" else None
    return _LOSSES.get(delivery)


def pause_s(retry_after_s: float | None) -> float:
    """How long a server that limits its rate is left alone."""
    return PAUSE_S if retry_after_s is None else min(retry_after_s, PAUSE_MOST_S)


def delay_s(loss: RetryReason, *, retry_after_s: float | None, routable: bool) -> float:
    """What must pass before the next try, beside the return of a server that went (`routable`
    False). `retry_after_s` is the server's own wish."""
    if loss is RetryReason.RATE_LIMITED:
        return pause_s(retry_after_s)
    return max(retry_after_s or 0.0, AGAIN_S if routable else 0.0)


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
    repeats: bool = True,
    affordable: bool = True,
) -> Allowed | Denied:
    """May the call be sent again? Safety first, then budget, time, and somebody to send it to.

    `attempts` were made so far; `remaining_s` is left of the caller's deadline; `delay_s` must be
    waited first; `affordable`: the server's budget of retries has one left. `retry_calls = "never"`
    is a budget of nothing. What never left our own line (`repeats` False) is not repeated by being
    sent for the first time, so that needs no budget.
    """
    rule = RULES[loss]
    if rule.executed and not harmless_twice:
        return Denied(RetryDenial.NOT_IDEMPOTENT)
    if repeats and not _within_budget(rule, policy, attempts=attempts, affordable=affordable):
        return Denied(RetryDenial.BUDGET)
    if remaining_s <= delay_s:
        return Denied(RetryDenial.DEADLINE)
    if not routable:
        return Denied(RetryDenial.UNAVAILABLE)
    return Allowed(loss)


def _within_budget(rule: Rule, policy: RetryCalls, *, attempts: int, affordable: bool) -> bool:
    if policy == "never" and not rule.repair:
        return False
    return not rule.counted or (attempts < MAX_ATTEMPTS and affordable)
