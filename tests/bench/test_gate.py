"""A routed call costs no more than it did, in figures that do not depend on the machine; and a
layer that somebody puts around every call is noticed."""

from __future__ import annotations

import pytest

from tests.bench import gate, limits

pytestmark = [pytest.mark.bench, pytest.mark.timeout(120)]

LIMITS = limits.read(gate.LIMITS.read_text())


def only(names: dict[str, float]) -> dict[str, limits.Limit]:
    return {name: limit for name, limit in LIMITS.items() if name in names}


def test_a_call_does_what_it_did_and_no_more() -> None:
    found = gate.counted()
    print(found)
    assert not limits.broken(only(found), found)


def test_a_call_costs_no_more_cpu_beside_the_least_that_does_the_work() -> None:
    found = gate.compared()
    print(found)
    assert not limits.broken(only(found), found)


def test_a_layer_that_decodes_each_result_is_caught() -> None:
    found = {"stdio: function calls a call": gate.counts(layer="wasteful")["calls"]}
    assert limits.broken(only(found), found)
