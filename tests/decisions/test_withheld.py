"""A tool that a person switched off is listed and not offered, with who, why and how long."""

from __future__ import annotations

from msgspec import Raw

from observant_host.decisions.acts import Ruling
from observant_host.decisions.catalogue import ListedTool, Listing
from observant_host.decisions.terms import ExclusionReason
from observant_host.decisions.withheld import offered, split

LISTING = Listing("s", tools=tuple(ListedTool(name, Raw(b"{}")) for name in ("a", "b")))
OFF = Ruling(act="disable", principal="ann", reason="it deletes", time=1.0)


def test_what_is_off_is_excluded_with_the_way_back() -> None:
    found = offered(LISTING, {"b": OFF, "not listed": OFF})
    assert [tool.name for tool in found.tools] == ["a"]
    (gone,) = found.excluded
    assert (gone.server, gone.local_name, gone.reason) == ("s", "b", ExclusionReason.DENIED)
    assert gone.detail == (
        "disabled by ann: it deletes; `observant-host enable s/b` offers it again"
    )


def test_a_listing_of_which_nothing_is_off_stays_the_same_object() -> None:
    assert offered(LISTING, {}) is LISTING
    assert offered(LISTING, {"other": OFF}) is LISTING


def test_a_server_and_a_tool_of_it_are_told_apart() -> None:
    assert split("s") == ("s", None)
    assert split("s/a/b") == ("s", "a/b")
