"""What is wrong with lists is named, counted and bounded; what people left out is no flaw."""

from __future__ import annotations

import pytest

from observant_host.decisions.catalogue import Excluded, Listing
from observant_host.decisions.listing_flaws import FLAWS, MAX_NAMED, Flaws, flaws
from observant_host.decisions.terms import ExclusionReason


def left_out(name: str, reason: ExclusionReason, detail: str = "") -> Excluded:
    return Excluded("s", name, reason, detail)


def test_a_good_listing_and_none_have_no_flaws() -> None:
    for listing in (None, Listing("s")):
        found = flaws(listing)
        assert not found
        assert found.sentence() == ""


@pytest.mark.parametrize("reason", list(ExclusionReason))
def test_only_what_the_server_is_to_blame_for_is_a_flaw(reason: ExclusionReason) -> None:
    found = flaws(Listing("s", excluded=(left_out("t", reason),)))
    assert bool(found) is (reason in FLAWS)
    denied = (ExclusionReason.DENIED, ExclusionReason.DRIFTED, ExclusionReason.UNPINNED)
    assert not (reason in denied and found)


def test_each_entry_is_named_with_its_reason() -> None:
    excluded = (
        left_out("a", ExclusionReason.INVALID_SCHEMA, "its schema is null"),
        left_out("", ExclusionReason.INVALID_NAME),
    )
    found = flaws(Listing("s", excluded=excluded))
    assert found == Flaws("", 2, ("a: its schema is null", "an entry without a name: invalid_name"))
    assert "2 entries are unusable" in found.sentence()
    assert "1 entry is unusable" in flaws(Listing("s", excluded=excluded[:1])).sentence()


def test_a_report_is_bounded_and_still_counts_all() -> None:
    long = left_out("n" * 1000, ExclusionReason.INVALID_NAME, "d" * 1000)
    found = flaws(Listing("s", excluded=(long,) * 5000, truncated="x" * 5000), chatty=True)
    assert found.excluded == 5000
    assert len(found.left_out) == MAX_NAMED
    assert len(repr(found)) < 10_000


def test_what_ended_early_and_what_never_ends_are_both_said() -> None:
    listing = Listing("s", truncated="tools/list ended after 4 entries: it repeated a cursor")
    found = flaws(listing, chatty=True)
    assert "repeated a cursor" in found.sentence()
    assert "again and again" in found.sentence()
    assert not found.left_out
