"""How long an answer may be kept, for whom, and what ends it early: every case of the rules."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.decisions.freshness import (
    EVERYBODY,
    MAX_TTL_S,
    Key,
    context_of,
    first_to_expire,
    fresh_until,
    is_fresh,
    subject_of,
    touches,
)


@pytest.mark.parametrize(
    ("ttl_ms", "lasts_s"),
    [(0, 0.0), (-5, 0.0), (1, 0.001), (300_000, 300.0), (10**18, MAX_TTL_S)],
)
def test_a_hint_lasts_as_long_as_it_says_within_its_bound(ttl_ms: int, lasts_s: float) -> None:
    assert fresh_until(1000.0, ttl_ms) == pytest.approx(1000.0 + lasts_s)


def test_fresh_means_strictly_before_the_end() -> None:
    until = fresh_until(1000.0, 5000)
    assert is_fresh(until, 1004.999)
    assert not is_fresh(until, 1005.0)
    assert not is_fresh(fresh_until(1000.0, 0), 1000.0)


@given(st.floats(0, 1e9), st.integers(), st.floats(0, 1e9))
def test_no_hint_whatever_keeps_longer_than_the_bound(
    received: float, ttl_ms: int, later: float
) -> None:
    until = fresh_until(received, ttl_ms)
    assert received <= until <= received + MAX_TTL_S
    assert not is_fresh(until, received + MAX_TTL_S + later)


def test_a_list_is_as_fresh_as_its_first_stale_page() -> None:
    assert first_to_expire([30.0, 10.0, 20.0]) == 10.0
    assert first_to_expire([]) == math.inf


@pytest.mark.parametrize(
    ("method", "params", "subject"),
    [
        ("resources/read", {"uri": "file:///a"}, "file:///a"),
        ("resources/read", {"uri": ""}, ""),
        ("resources/read", {"uri": 5}, None),
        ("resources/read", {}, None),
        ("resources/read", {"uri": "file:///a", "requestState": ""}, None),
        ("resources/read", {"uri": "file:///a", "inputResponses": {}}, None),
        ("resources/read", {"uri": "file:///a", "_meta": {}}, None),
        ("tools/call", {"uri": "file:///a", "name": "t"}, None),
        ("prompts/get", {"name": "p"}, None),
        ("completion/complete", {}, None),
    ],
)
def test_only_plain_reads_are_kept(
    method: str, params: dict[str, Any], subject: str | None
) -> None:
    assert subject_of(method, params) == subject


def test_private_answers_never_meet_across_contexts_and_public_ones_always_do() -> None:
    contexts = ["", "a", "b"]
    for one, other in itertools.product(contexts, contexts):
        assert (context_of("private", one) == context_of("private", other)) == (one == other)
        assert context_of("public", one) == context_of("public", other) == EVERYBODY
        assert context_of("private", one) != context_of("public", other)


def test_every_part_of_a_key_tells_answers_apart() -> None:
    base = Key("s", "c", "2026-07-28", "resources/read", "file:///a")
    others = [
        Key("t", "c", "2026-07-28", "resources/read", "file:///a"),
        Key("s", "d", "2026-07-28", "resources/read", "file:///a"),
        Key("s", "c", "2027-01-01", "resources/read", "file:///a"),
        Key("s", "c", "2026-07-28", "prompts/get", "file:///a"),
        Key("s", "c", "2026-07-28", "resources/read", "file:///b"),
    ]
    assert len({base, *others}) == 6


@pytest.mark.parametrize(
    ("updated", "cached", "stale"),
    [
        ("file:///a", "file:///a", True),
        ("file:///d/a", "file:///d/", True),
        ("file:///d/", "file:///d/a", True),
        ("file:///a", "file:///b", False),
        ("", "file:///b", True),
    ],
)
def test_an_update_reaches_the_uri_its_parts_and_what_contains_it(
    updated: str, cached: str, stale: bool
) -> None:
    assert touches(updated, cached) is stale
