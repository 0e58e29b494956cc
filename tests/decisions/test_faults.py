"""The table of outcomes that scripts, the API and the metrics share."""

from __future__ import annotations

from typing import get_args

import pytest

from observant_host.decisions.faults import VERDICTS, api_status, exit_code, fault_of_unavailable
from observant_host.decisions.terms import Cause, PeerState
from observant_host.errors import Outcome


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
