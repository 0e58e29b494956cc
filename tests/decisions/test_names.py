"""Who owns a bare name: the first in order, for as long as it lists it, and never silently anew."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observant_host.decisions.assignment import Assigned, assign
from observant_host.decisions.names import (
    Claim,
    Grant,
    in_grace,
    is_reserved,
    qualified,
)

GRACE = 300.0


def run(claims: list[Claim], **kw: Any) -> Assigned:
    return assign(
        claims,
        **{
            "policy": "prefix",
            "granted": {},
            "now_s": 1000.0,
            "startup_over": True,
            "grace_s": GRACE,
            **kw,
        },
    )


def listed(server: str, *names: str, complete: bool = True) -> Claim:
    return Claim(server, enabled=True, settled=True, names=names, complete=complete)


def waiting(server: str) -> Claim:
    return Claim(server, enabled=True, settled=False, names=None)


def refused(server: str) -> Claim:
    return Claim(server, enabled=True, settled=True, names=None)


def disabled(server: str, *names: str) -> Claim:
    return Claim(server, enabled=False, settled=False, names=names or None)


def whats(assigned: Assigned) -> list[tuple[str, str, str, str]]:
    return [(c.what, c.name, c.server, c.reason) for c in assigned.changes]


def test_the_first_in_config_order_gets_the_bare_name_and_the_decision_is_told() -> None:
    after = run([listed("a", "search"), listed("b", "search", "other")])
    assert after.owners == {"search": "a", "other": "b"}
    assert after.listers == {"search": ("a", "b")}
    assert whats(after) == [
        ("granted", "search", "a", "first_in_order"),
        ("granted", "other", "b", "first_in_order"),
    ]


def test_nothing_is_granted_while_an_enabled_server_before_may_still_come() -> None:
    claims = [waiting("a"), listed("b", "search")]
    assert run(claims, startup_over=False).owners == {}
    assert run(claims, startup_over=True).owners == {"search": "b"}


@pytest.mark.parametrize("before", [refused("a"), disabled("a"), listed("a", "x")])
def test_a_settled_or_disabled_server_before_does_not_hold_names_back(before: Claim) -> None:
    after = run([before, listed("b", "search")], startup_over=False)
    assert after.owners["search"] == "b"


def test_a_late_comer_after_the_deadline_does_not_take_a_granted_name() -> None:
    first = run([waiting("a"), listed("b", "search")])
    later = run([listed("a", "search"), listed("b", "search")], granted=first.granted)
    assert later.owners == {"search": "b"}
    assert later.changes == ()


@pytest.mark.parametrize("owner", [waiting("a"), refused("a"), listed("a", complete=False)])
def test_a_grant_holds_while_its_owner_has_not_listed_in_this_run(owner: Claim) -> None:
    after = run([owner, listed("b", "search")], granted={"search": Grant("a")})
    assert after.owners == {"search": "a"}
    assert after.changes == ()


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ([listed("a", "x"), listed("b", "search")], "not_listed"),
        ([disabled("a", "search"), listed("b", "search")], "disabled"),
        ([listed("b", "search")], "left_config"),
    ],
)
def test_a_name_given_up_is_nobodys_until_the_grace_is_over(
    claims: list[Claim], reason: str
) -> None:
    given_up = run(claims, granted={"search": Grant("a")})
    assert given_up.owners.get("search") is None
    assert ("given_up", "search", "a", reason) in whats(given_up)
    assert given_up.wake_at == 1000.0 + GRACE

    still = run(claims, granted=given_up.granted, now_s=1000.0 + GRACE - 1)
    assert "search" not in still.owners
    assert still.changes == ()

    over = run(claims, granted=given_up.granted, now_s=1000.0 + GRACE)
    assert over.owners["search"] == "b"
    assert whats(over) == [("moved", "search", "b", "from a")]
    assert over.wake_at is None


def test_the_owner_may_take_its_name_back_within_the_grace() -> None:
    after = run([listed("a", "search")], granted={"search": Grant("a", 900.0)})
    assert after.owners == {"search": "a"}
    assert whats(after) == [("kept", "search", "a", "taken_back")]


def test_after_the_grace_the_former_owner_stands_in_config_order_like_anyone() -> None:
    gone = {"search": Grant("b", 100.0)}
    after = run([listed("a", "search"), listed("b", "search")], granted=gone)
    assert after.owners == {"search": "a"}
    again = run([listed("b", "search")], granted=gone)
    assert whats(again) == [("granted", "search", "b", "first_in_order")]


def test_the_grace_goes_on_while_a_returned_owner_has_not_listed_yet() -> None:
    held = {"search": Grant("a", 900.0)}
    after = run([waiting("a"), listed("b", "search")], granted=held)
    assert after.granted == held
    assert after.owners == {}


def test_a_name_that_nobody_wants_is_forgotten_after_the_grace() -> None:
    assert run([listed("a")], granted={"old": Grant("a", 100.0)}).granted == {}


def test_without_a_grace_a_name_moves_at_once_and_both_decisions_are_told() -> None:
    after = run([listed("a"), listed("b", "s")], granted={"s": Grant("a")}, grace_s=0)
    assert whats(after) == [("given_up", "s", "a", "not_listed"), ("moved", "s", "b", "from a")]


def test_a_clock_set_back_never_stretches_the_grace() -> None:
    after = run([listed("a")], granted={"s": Grant("a", 9_999_999.0)}, now_s=1000.0)
    assert after.granted == {"s": Grant("a", 1000.0)}


def test_a_name_that_reads_like_a_qualified_one_is_never_granted_bare() -> None:
    claims = [listed("a", "b/search", "x/search"), listed("b", "search")]
    after = run(claims)
    assert "b/search" not in after.owners
    assert after.owners["x/search"] == "a"


def test_a_grant_ends_when_a_server_of_that_name_joins_the_config() -> None:
    claims = [listed("a", "b/search"), waiting("b")]
    after = run(claims, granted={"b/search": Grant("a")})
    assert after.granted == {}
    assert whats(after) == [("given_up", "b/search", "a", "reserved")]


def test_the_policy_qualified_grants_nothing_and_forgets_nothing() -> None:
    held = {"search": Grant("a")}
    after = run([listed("a"), listed("b", "search")], policy="qualified", granted=held)
    assert (after.owners, after.granted, after.changes, after.wake_at) == ({}, held, (), None)


def test_small_promises() -> None:
    assert qualified("a", "b/c") == "a/b/c"
    assert is_reserved("a/x", {"a"})
    assert not is_reserved("a", {"a"})
    assert not in_grace(Grant("a"), now_s=1.0, grace_s=GRACE)


# Properties

SERVERS = ("a", "b", "c", "d")
NAMES = st.sampled_from(["search", "get", "x", "a/search", "b/x"])
OUTCOMES = st.lists(
    st.one_of(st.none(), st.lists(NAMES, unique=True).map(tuple)), min_size=4, max_size=4
)
GRANTS = st.dictionaries(
    NAMES,
    st.builds(
        Grant,
        st.sampled_from([*SERVERS, "gone"]),
        st.one_of(st.none(), st.floats(0, 2000, allow_nan=False)),
    ),
)


@settings(max_examples=50, deadline=None)
@given(outcomes=OUTCOMES, held=GRANTS)
def test_the_order_of_answers_within_the_start_up_changes_no_name(
    outcomes: list[tuple[str, ...] | None], held: dict[str, Grant]
) -> None:
    results = []
    for order in permutations(range(4)):
        granted: Any = held
        done: set[int] = set()
        after = None
        for index in order:
            done.add(index)
            claims = [
                Claim(s, enabled=True, settled=i in done, names=outcomes[i] if i in done else None)
                for i, s in enumerate(SERVERS)
            ]
            after = run(claims, granted=granted, startup_over=False)
            granted = after.granted
        assert after is not None
        results.append((after.owners, dict(after.granted)))
    assert all(result == results[0] for result in results)


CLAIMS = st.tuples(
    *(
        st.builds(
            Claim,
            st.just(server),
            enabled=st.booleans(),
            settled=st.booleans(),
            names=st.one_of(st.none(), st.lists(NAMES, unique=True).map(tuple)),
            complete=st.booleans(),
        )
        for server in SERVERS
    )
)
STEPS = st.lists(st.tuples(CLAIMS, st.floats(0, 200), st.booleans()), min_size=1, max_size=8)


@settings(max_examples=50, deadline=None)
@given(steps=STEPS)
def test_no_name_changes_its_owner_without_a_decision_and_a_whole_grace(
    steps: list[tuple[tuple[Claim, ...], float, bool]],
) -> None:
    granted: Any = {}
    owner_of: dict[str, str] = {}
    given_up: dict[str, float] = {}
    now = 0.0
    for claims, passed, over in steps:
        now += passed
        after = run(list(claims), granted=granted, now_s=now, startup_over=over)
        granted = after.granted
        told = {(c.what, c.name) for c in after.changes}
        for name in {c.name for c in after.changes if c.what == "given_up"}:
            given_up[name] = now
        for name, owner in after.owners.items():
            before = owner_of.get(name)
            if before is not None and before != owner:
                assert ("moved", name) in told or ("granted", name) in told
                assert now - given_up[name] >= GRACE
            owner_of[name] = owner


@settings(max_examples=50, deadline=None)
@given(steps=STEPS)
def test_an_owner_is_enabled_or_holding_and_every_grant_of_a_lister_is_its_own(
    steps: list[tuple[tuple[Claim, ...], float, bool]],
) -> None:
    granted: Any = {}
    now = 0.0
    for claims, passed, over in steps:
        now += passed
        after = run(list(claims), granted=granted, now_s=now, startup_over=over)
        granted = after.granted
        enabled = {claim.server for claim in claims if claim.enabled}
        assert set(after.owners.values()) <= enabled
        assert all(not is_reserved(name, set(SERVERS)) for name in after.owners)


ORDERS = st.sampled_from([SERVERS, SERVERS[::-1], SERVERS[1:]])
HISTORY = st.lists(
    st.tuples(CLAIMS, ORDERS, st.floats(0, 200), st.booleans(), st.sets(st.sampled_from(range(4)))),
    min_size=2,
    max_size=8,
)


@given(
    steps=HISTORY,
    held=GRANTS,
    policy=st.sampled_from(["prefix", "qualified", "reject"]),
    one_order=st.booleans(),
)
def test_going_on_from_what_was_assigned_gives_what_assigning_afresh_gives(
    steps: list[Any], held: dict[str, Grant], policy: str, *, one_order: bool
) -> None:
    granted: Any = held
    before: Assigned | None = None
    claims: dict[str, Claim] = {}
    now = 0.0
    for every, order, passed, over, others in steps:
        now += passed
        # some servers claim otherwise than in the step before, in an order that may be another
        fresh = {c.server: c for at, c in enumerate(every) if at in others or not claims}
        claims = {**claims, **fresh}
        listed_now = [claims[server] for server in (SERVERS if one_order else order)]
        how = {"granted": granted, "policy": policy, "now_s": now, "startup_over": over}
        on, afresh = run(listed_now, before=before, **how), run(listed_now, **how)
        assert on.changes == afresh.changes
        assert (on.granted, on.owners, on.idle, on.wake_at) == (
            afresh.granted,
            afresh.owners,
            afresh.idle,
            afresh.wake_at,
        )
        assert list(on.listers.items()) == list(afresh.listers.items())
        assert on.all_listers == afresh.all_listers
        served = {n: g for n, g in on.granted.items() if on.owner(n) in on.all_listers.get(n, ())}
        if policy != "qualified":
            assert on.idle == {n: g for n, g in on.granted.items() if n not in served}
        if one_order and before is not None:
            assert on.goes_on
        before, granted = on, on.granted
