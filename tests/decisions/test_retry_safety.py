"""May it be sent again? Every kind of loss, every answer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.decisions.retry_safety import (
    AGAIN_S,
    MAX_ATTEMPTS,
    PAUSE_MOST_S,
    PAUSE_S,
    RULES,
    Allowed,
    Denied,
    RetryDenial,
    RetryReason,
    decide,
    delay_s,
    is_harmless_twice,
    loss_of,
    pause_s,
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
        ("not_sent", {"affordable": False}, "budget"),
        ("rate_limited", {"affordable": False}, "budget"),
        ("header_mismatch", {"affordable": False}, "budget"),
        ("lost", {"affordable": False, "harmless_twice": True}, "budget"),
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
    facts = {"attempts": 100, "affordable": False}
    assert ask("input_round", **facts) == Allowed(RetryReason.INPUT_ROUND)


def test_what_never_left_our_line_is_not_repeated_by_being_sent() -> None:
    spent = {"repeats": False, "affordable": False, "attempts": MAX_ATTEMPTS, "policy": "never"}
    assert ask("not_sent", **spent) == Allowed(RetryReason.NOT_SENT)
    assert ask("not_sent", remaining_s=0.0, **spent) == Denied(RetryDenial.DEADLINE)
    assert ask("not_sent", routable=False, **spent) == Denied(RetryDenial.UNAVAILABLE)


POLICIES = ("not_sent", "idempotent", "never")


@pytest.mark.parametrize("loss", list(RetryReason))
@pytest.mark.parametrize("policy", POLICIES)
def test_over_all_circumstances_only_harmless_or_unexecuted_calls_are_sent_again(
    loss: RetryReason, policy: RetryCalls
) -> None:
    """The whole table: what is allowed keeps every promise, what is denied breaks one."""
    rule = RULES[loss]
    yes_no = (False, True)
    for harmless, repeats, affordable, routable in itertools.product(yes_no, repeat=4):
        for attempts, left_s, pause in itertools.product((1, MAX_ATTEMPTS), (1.0, 0.0), (0.0, 2.0)):
            found = decide(
                loss,
                policy=policy,
                harmless_twice=harmless,
                attempts=attempts,
                remaining_s=left_s,
                delay_s=pause,
                routable=routable,
                repeats=repeats,
                affordable=affordable,
            )
            safe = harmless or not rule.executed
            wanted = policy != "never" or rule.repair
            in_budget = not rule.counted or (attempts < MAX_ATTEMPTS and affordable)
            allowed = safe and (not repeats or (wanted and in_budget)) and left_s > pause
            assert isinstance(found, Allowed) == (allowed and routable)


@pytest.mark.parametrize(
    ("loss", "retry_after_s", "routable", "seconds"),
    [
        ("rate_limited", None, True, PAUSE_S),
        ("rate_limited", 0.0, True, 0.0),
        ("rate_limited", 7.0, False, 7.0),
        ("rate_limited", 1e9, True, PAUSE_MOST_S),
        ("not_sent", None, False, 0.0),
        ("not_sent", None, True, AGAIN_S),
        ("lost", 4.0, True, 4.0),
        ("lost", 4.0, False, 4.0),
        ("lost", None, True, AGAIN_S),
    ],
)
def test_how_long_to_wait_before_the_next_try(
    loss: str, retry_after_s: float | None, *, routable: bool, seconds: float
) -> None:
    assert delay_s(RetryReason(loss), retry_after_s=retry_after_s, routable=routable) == seconds


def test_a_server_that_names_no_pause_is_left_alone_for_a_moment() -> None:
    assert pause_s(None) == PAUSE_S


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


@pytest.mark.parametrize(
    ("delivery", "fault", "loss"),
    [
        ("replied", "peer", "rate_limited"),
        ("not_sent", "peer", None),
        ("replied", "policy", None),
    ],
)
def test_a_refusal_for_rate_is_a_loss_of_the_call_that_was_refused_only(
    delivery: Delivery, fault: Fault, loss: str | None
) -> None:
    found = loss_of("unavailable", delivery=delivery, fault=fault, rate_limited=True)
    assert found == loss
