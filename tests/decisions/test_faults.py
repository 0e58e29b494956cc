"""The table of outcomes that scripts, the API and the metrics share."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from observant_host.decisions.faults import (
    HARMLESS,
    NOTHING,
    PERHAPS,
    VERDICTS,
    api_status,
    certainty,
    exit_code,
    fault_of_unavailable,
)
from observant_host.decisions.terms import Cause, PeerState
from observant_host.errors import Delivery, Outcome


@pytest.mark.parametrize(
    ("outcome", "code", "status", "fault"),
    [
        ("ok", 0, 200, "none"),
        ("tool_error", 1, 200, "none"),
        ("rpc_error", 1, 200, "peer"),
        ("invalid", 2, 400, "caller"),
        ("unavailable", 3, 503, "peer"),
        ("timeout", 4, 504, "peer"),
        ("cancelled", 130, 499, "caller"),
    ],
)
def test_each_outcome_has_its_exit_code_status_and_fault(
    outcome: Outcome, code: int, status: int, fault: str
) -> None:
    assert exit_code(outcome) == code
    assert api_status(outcome) == status
    assert VERDICTS[outcome].fault == fault


def test_the_table_is_complete() -> None:
    assert set(VERDICTS) == set(get_args(Outcome))


def test_an_unknown_name_is_404_and_nothing_else_is() -> None:
    assert api_status("invalid", unknown=True) == 404
    assert api_status("timeout", unknown=True) == 504


@pytest.mark.parametrize(
    ("state", "cause", "fault"),
    [
        (PeerState.BACKOFF, Cause.PROCESS, "peer"),
        (PeerState.UNAVAILABLE, Cause.NETWORK, "peer"),
        (PeerState.UNAVAILABLE, Cause.PROTOCOL, "peer"),
        (PeerState.UNAVAILABLE, Cause.POLICY, "policy"),
        (PeerState.UNAVAILABLE, Cause.AUTH, "policy"),
        (PeerState.UNAVAILABLE, Cause.CONFIG, "policy"),
        (PeerState.DISABLED, None, "policy"),
        (PeerState.STARTING, None, "host"),
        (PeerState.STOPPED, None, "host"),
    ],
)
def test_who_is_to_blame_for_a_server_that_takes_no_calls(
    state: PeerState, cause: Cause | None, fault: str
) -> None:
    assert fault_of_unavailable(state, cause) == fault


def said(outcome: Outcome, delivery: Delivery, **facts: bool) -> str:
    facts = {"refused": False, "begun": False, "acts": True, "harmless": False, **facts}
    return certainty(outcome, delivery=delivery, **facts)


@pytest.mark.parametrize("outcome", get_args(Outcome))
@pytest.mark.parametrize("delivery", get_args(Delivery))
def test_nothing_executed_is_only_said_where_it_is_proven(
    outcome: Outcome, delivery: Delivery
) -> None:
    for refused, begun, acts, harmless in itertools.product((False, True), repeat=4):
        told = said(outcome, delivery, refused=refused, begun=begun, acts=acts, harmless=harmless)
        proven = (delivery == "not_sent" or refused) and not begun
        ended = outcome in ("unavailable", "timeout", "cancelled")
        assert (told == NOTHING) == (ended and proven)
        if told in (PERHAPS, HARMLESS):
            assert acts
            assert begun or delivery != "not_sent"
            assert (told == HARMLESS) == harmless


@pytest.mark.parametrize(
    ("outcome", "delivery", "told"),
    [
        ("timeout", "sent_no_reply", PERHAPS),
        ("unavailable", "sent_no_reply", PERHAPS),
        ("invalid", "replied", PERHAPS),
        ("invalid", "sent_no_reply", PERHAPS),
        ("invalid", "not_sent", ""),
        ("unavailable", "replied", ""),
        ("rpc_error", "replied", ""),
        ("cancelled", "sent_no_reply", PERHAPS),
        ("cancelled", "not_sent", NOTHING),
    ],
)
def test_what_may_have_been_executed_is_not_to_be_simply_repeated(
    outcome: Outcome, delivery: Delivery, told: str
) -> None:
    assert said(outcome, delivery) == told
    without = NOTHING if told == NOTHING else ""
    assert said(outcome, delivery, acts=False) == without
