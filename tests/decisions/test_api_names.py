"""Names for model APIs: fit, unique, stable, and nobody else's business."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observant_host.decisions.api_names import assign_api_names, cleaned, fits

FIT = re.compile(r"^[a-zA-Z0-9_-]{1,64}\Z")

ZOO = (
    "a.b",
    "a_b",
    "a/b",
    "a b",
    "a,b",
    "Case",
    "case",
    "x__y",
    "größe",
    "日本語",
    "line\nbreak",
    "trailing\n",
    "n" * 200,
    "n" * 201,
    "n" * 64,
    "n" * 65,
    "...",
    "acme_/status",
    "acme/_status",
    "acme/status",
    "acme__status",
)


def test_the_zoo_gets_fit_and_unique_names_and_what_fits_is_left_alone() -> None:
    api = assign_api_names(ZOO)
    assert all(FIT.match(name) for name in api.values())
    assert len(set(api.values())) == len(ZOO)
    assert all(api[name] == name for name in ("a_b", "Case", "case", "x__y", "n" * 64))


def test_a_cleaned_name_stays_readable() -> None:
    assert cleaned("github/search").startswith("github_search_")
    assert cleaned("日本語").startswith("name_")


@pytest.mark.parametrize("name", ZOO)
def test_other_names_do_not_change_an_api_name(name: str) -> None:
    assert assign_api_names([name])[name] == assign_api_names(ZOO)[name]


def test_a_hash_yields_to_a_real_tool_of_that_very_name_however_often() -> None:
    real = [cleaned("a/b", salt) for salt in range(5)]
    api = assign_api_names(["a/b", *real])
    assert api["a/b"] == cleaned("a/b", 5)
    assert all(api[name] == name for name in real)


def test_a_name_that_is_taken_elsewhere_stays_free() -> None:
    assert assign_api_names(["a/b"], taken=[cleaned("a/b")])["a/b"] == cleaned("a/b", 1)


def test_a_newline_at_the_end_does_not_count_as_fit() -> None:
    assert not fits("name\n")
    assert not fits("")


def test_two_names_with_one_cleaned_form_and_one_hash_are_settled_in_a_fixed_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "observant_host.decisions.api_names.cleaned", lambda _name, salt=0: f"same_{salt}"
    )
    assert assign_api_names(["b/x", "a/x"]) == {"a/x": "same_0", "b/x": "same_1"}


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=30))
def test_any_names_get_fit_unique_names_in_any_order(names: list[str]) -> None:
    api = assign_api_names(names)
    assert all(FIT.match(name) for name in api.values())
    assert len(set(api.values())) == len(names)
    assert assign_api_names(reversed(names)) == api
