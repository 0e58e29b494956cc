"""Who needs a person, as a table: every state, cause and reason."""

from __future__ import annotations

from itertools import product

import pytest

from observant_host.decisions.acts import Act
from observant_host.decisions.attention import ALLOWABLE, Level, attention
from observant_host.decisions.terms import OUTAGES, Cause, PeerState, Reason
from tests.support.many import for_each

QUIET = frozenset({PeerState.READY, PeerState.STARTING, PeerState.DISABLED, PeerState.STOPPED})


def seen(
    *,
    state: PeerState = PeerState.UNAVAILABLE,
    cause: Cause | None = Cause.POLICY,
    reason: str = "",
    ruling: str | None = None,
    expects_modern: bool = False,
):
    return attention(
        "old", state=state, cause=cause, reason=reason, ruling=ruling, expects_modern=expects_modern
    )


@for_each({str(one): one for one in product(sorted(QUIET), (None, *Cause))})
def test_a_server_that_works_or_is_not_wanted_needs_nobody(
    state: PeerState, cause: Cause | None
) -> None:
    assert seen(state=state, cause=cause) is None


@for_each({str(one): one for one in product((PeerState.UNAVAILABLE, PeerState.BACKOFF), Cause)})
def test_policy_auth_and_config_wait_for_a_decision_and_the_others_are_outages(
    state: PeerState, cause: Cause
) -> None:
    found = seen(state=state, cause=cause)
    assert found is not None
    assert found.level is (Level.OUTAGE if cause in OUTAGES else Level.DECISION)


@for_each({str(one): one for one in product(Cause, Reason)})
def test_allow_is_offered_where_it_can_help_and_nowhere_else(cause: Cause, reason: Reason) -> None:
    found = seen(cause=cause, reason=reason)
    assert found is not None
    assert ("allow" in found.acts) == (cause is Cause.POLICY and reason in ALLOWABLE)


def test_allow_is_not_offered_where_the_configuration_expects_a_modern_server() -> None:
    found = seen(reason=Reason.WAS_MODERN, expects_modern=True)
    assert found is not None
    assert "allow" not in found.acts


def test_what_a_person_switched_off_is_listed_with_the_way_back() -> None:
    found = seen(state=PeerState.DISABLED, cause=None, ruling="disable")
    assert found is not None
    assert (found.level, found.acts, found.command) == (
        Level.STANDING,
        ("enable",),
        "observant-host enable old",
    )


def test_a_degraded_server_is_an_outage_that_a_retry_may_end() -> None:
    found = seen(state=PeerState.DEGRADED, cause=None)
    assert found is not None
    assert found.acts == ("retry", "restart")
    assert found.level is Level.OUTAGE


def test_an_unavailable_server_without_a_cause_offers_nothing() -> None:
    assert seen(cause=None) is None


def test_a_configuration_that_cannot_be_used_is_mended_and_read_again() -> None:
    found = seen(cause=Cause.CONFIG)
    assert found is not None
    assert found.command == "observant-host reload"


@pytest.mark.parametrize("cause", Cause)
def test_every_act_that_is_offered_exists(cause: Cause) -> None:
    found = seen(cause=cause, reason=Reason.AMBIGUOUS_ERROR)
    assert found is not None
    assert set(found.acts) <= {*Act, "allow", "reload"}
