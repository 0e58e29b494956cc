"""What follows a life's end: its reason, its delay, or nothing until a person acts."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from observant_host.config import RestartPolicy
from observant_host.decisions.restart import Ended, Restart, after, heals, may_wake, reason_of
from observant_host.decisions.terms import OUTAGES, Cause, PeerState, RestartReason

POLICY = RestartPolicy()


def follow(ended: Ended, attempts: int = 0, random: float = 0.5) -> Restart:
    return after(ended, policy=POLICY, attempts=attempts, random_0_1=random)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"how": "exit", "exit_code": 0}, "exit"),
        ({"how": "exit", "exit_code": 3}, "exit"),
        ({"how": "exit", "exit_code": -9}, "signal"),
        ({"how": "exit"}, "exit"),
        ({"how": "spawn_failed"}, "exit"),
        ({"how": "eof"}, "connection_lost"),
        ({"how": "lost"}, "connection_lost"),
        ({"how": "closed"}, "operator"),
        ({"how": "closed", "ended_by_us": RestartReason.SILENT}, "silent"),
        ({"how": "exit", "exit_code": -15, "ended_by_us": RestartReason.MEMORY}, "memory"),
    ],
)
def test_the_reason_of_a_restart(facts: dict[str, Any], reason: str) -> None:
    assert reason_of(Ended(**facts)) == reason


def test_only_sustained_uptime_resets_the_backoff() -> None:
    attempts = 0
    for expected in (0.5, 1.0, 2.0):
        restart = follow(Ended(how="exit", uptime_s=59.9), attempts, random=1.0)
        assert restart.delay_s == expected
        attempts = restart.attempts
    assert attempts == 3
    healthy = follow(Ended(how="exit", uptime_s=60.0), attempts, random=1.0)
    assert (healthy.attempts, healthy.delay_s) == (1, 0.5)


def test_the_delay_never_passes_the_maximum() -> None:
    assert follow(Ended(how="exit"), 1000, random=1.0).delay_s == POLICY.restart_max_s


def test_a_command_that_does_not_exist_is_given_up_at_once() -> None:
    restart = follow(Ended(how="spawn_failed", spawn_errno=errno.ENOENT))
    assert restart.gave_up
    assert restart.delay_s == 0


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ETXTBSY, None])
def test_a_start_that_may_succeed_later_is_tried_again(code: int | None) -> None:
    assert heals(Cause.PROCESS, spawn_errno=code)
    assert not follow(Ended(how="spawn_failed", spawn_errno=code)).gave_up


@pytest.mark.parametrize("reason", [RestartReason.OPERATOR, RestartReason.RELOAD])
def test_what_a_person_asked_for_happens_at_once(reason: RestartReason) -> None:
    restart = follow(Ended(how="closed", ended_by_us=reason), 7)
    assert (restart.delay_s, restart.attempts, restart.gave_up) == (0.0, 0, False)


@pytest.mark.parametrize("cause", list(Cause))
def test_only_a_login_and_a_configuration_wait_for_a_person(cause: Cause) -> None:
    assert heals(cause) == (cause not in (Cause.AUTH, Cause.CONFIG))


@pytest.mark.parametrize("cause", [*Cause, None])
@pytest.mark.parametrize("state", list(PeerState))
def test_a_call_wakes_only_what_is_down_by_an_outage(state: PeerState, cause: Cause | None) -> None:
    coming = state in (PeerState.BACKOFF, PeerState.STARTING)
    out = state is PeerState.UNAVAILABLE and cause in OUTAGES
    assert may_wake(state, cause) == (coming or out)
