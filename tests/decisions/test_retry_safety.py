"""May it be sent again? Every kind of loss, every answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from observant_host.decisions.retry_safety import (
    MAX_ATTEMPTS,
    RULES,
    Allowed,
    Denied,
    RetryDenial,
    RetryReason,
    decide,
    is_harmless_twice,
    loss_of,
)

if TYPE_CHECKING:
    from observant_host.config import RetryCalls
    from observant_host.errors import Delivery, Fault, Outcome


def ask(loss: str, **facts: Any) -> Allowed | Denied:
    return decide(
        RetryReason(loss),
        **{
            "policy": "not_sent",
            "harmless_twice": False,
            "attempts": 1,
            "remaining_s": 5.0,
            **facts,
        },
    )


def test_every_reason_has_a_rule() -> None:
    assert set(RULES) == set(RetryReason)


@pytest.mark.parametrize("reason", [r for r in RetryReason if r is not RetryReason.LOST])
def test_what_was_surely_not_executed_may_be_sent_again(reason: RetryReason) -> None:
    assert ask(reason) == Allowed(reason)


def test_what_may_have_been_executed_needs_to_be_harmless_twice() -> None:
    assert ask("lost") == Denied(RetryDenial.NOT_IDEMPOTENT)
    assert ask("lost", harmless_twice=True) == Allowed(RetryReason.LOST)


@pytest.mark.parametrize(
    ("loss", "facts", "denial"),
    [
        ("not_sent", {"policy": "never"}, "budget"),
        ("rate_limited", {"policy": "never"}, "budget"),
        ("not_sent", {"attempts": MAX_ATTEMPTS}, "budget"),
        ("session_lost", {"attempts": MAX_ATTEMPTS}, "budget"),
        ("not_sent", {"remaining_s": 0.0}, "deadline"),
        ("rate_limited", {"remaining_s": 5.0, "delay_s": 5.0}, "deadline"),
        ("not_sent", {"routable": False}, "unavailable"),
    ],
)
def test_what_stands_against_it(loss: str, facts: dict[str, Any], denial: str) -> None:
    assert ask(loss, **facts) == Denied(RetryDenial(denial))


@pytest.mark.parametrize("loss", ["header_mismatch", "session_lost", "input_round"])
def test_never_does_not_forbid_what_the_protocol_asks_for(loss: str) -> None:
    assert ask(loss, policy="never") == Allowed(RetryReason(loss))


def test_input_rounds_are_not_counted_as_attempts() -> None:
    assert ask("input_round", attempts=100) == Allowed(RetryReason.INPUT_ROUND)


@pytest.mark.parametrize(
    ("outcome", "delivery", "fault", "loss"),
    [
        ("unavailable", "not_sent", "peer", "not_sent"),
        ("unavailable", "sent_no_reply", "peer", "lost"),
        ("unavailable", "replied", "peer", None),
        ("unavailable", "not_sent", "host", None),
        ("unavailable", "not_sent", "policy", None),
        ("timeout", "not_sent", "peer", None),
        ("rpc_error", "replied", "peer", None),
    ],
)
def test_only_the_peers_end_is_a_loss(
    outcome: Outcome, delivery: Delivery, fault: Fault, loss: str | None
) -> None:
    assert loss_of(outcome, delivery=delivery, fault=fault) == loss


@pytest.mark.parametrize(
    ("is_read", "policy", "declared", "harmless"),
    [
        (True, "not_sent", False, True),
        (False, "not_sent", True, False),
        (False, "idempotent", True, True),
        (False, "idempotent", False, False),
        (False, "never", True, False),
    ],
)
def test_what_is_harmless_twice(
    *, is_read: bool, policy: RetryCalls, declared: bool, harmless: bool
) -> None:
    said = is_harmless_twice(is_read=is_read, policy=policy, declared_idempotent=declared)
    assert said is harmless
