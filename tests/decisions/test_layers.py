"""A layered mapping is what a plain copy that was changed alike would be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.decisions.layers import THICK
from observant_host.decisions.layers import layered as copied

KEYS = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(0, 3))), max_size=6)


@given(below=st.dictionaries(KEYS, st.integers(0, 3)), copies=st.lists(STEPS, max_size=4))
def test_every_copy_is_as_a_plain_one_and_leaves_those_before_it_alone(
    below: dict[str, int], copies: list[list[tuple[str, int | None]]]
) -> None:
    plain, layered = dict(below), copied(below)
    for steps in copies:
        was, plain, layered = (plain, layered), dict(plain), copied(layered)
        for key, value in steps:
            if value is not None:
                plain[key] = layered[key] = value
            else:
                assert plain.pop(key, None) == layered.pop(key, None)
            assert (key in plain) == (key in layered)
        assert dict(layered) == layered == plain
        assert len(layered) == len(plain)
        assert was[1] == was[0]


def test_what_is_not_there_cannot_be_taken_out() -> None:
    layered = copied({"a": 1})
    del layered["a"]
    for key in ("a", "b"):
        with pytest.raises(KeyError):
            del layered[key]
        with pytest.raises(KeyError):
            layered[key]
        assert layered.get(key) is None


def test_a_thick_layer_is_made_one_with_what_is_under_it() -> None:
    below = {str(n): n for n in range(THICK)}
    one = copied(below)
    one["a"] = 1
    two = copied(one)
    two["b"] = 1
    assert two._under is below
    assert copied(two)._under == two
