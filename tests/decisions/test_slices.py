"""A slice shows what it was given and tells nothing of the rest, not even that there is a rest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from observant_host.config import Profile, ToolFilter
from observant_host.decisions.catalogue import (
    Catalogue,
    Excluded,
    ListedPrompt,
    ListedResource,
    ListedTool,
    Listing,
    Missing,
    PeerView,
)
from observant_host.decisions.merge import merge
from observant_host.decisions.names import Grant, Grants
from observant_host.decisions.routes import find_tool
from observant_host.decisions.slices import ALL, ELSEWHERE, Slice, slice_of, sliced
from observant_host.decisions.terms import Cause, ExclusionReason, PeerState


def listing(server: str, *tools: str, **more: Any) -> Listing:
    raw = msgspec.Raw(b"{}")
    keys: dict[str, Any] = {
        "tools": tuple(ListedTool(name, raw) for name in tools),
        "prompts": (ListedPrompt("greet", raw),),
        "resources": (ListedResource("file:///shared", raw), ListedResource(f"{server}:x", raw)),
        "excluded": (
            Excluded(server, "broken", ExclusionReason.INVALID_SCHEMA, "no object"),
            Excluded(server, "p", ExclusionReason.INVALID_NAME, "no name", kind="prompt"),
        ),
    }
    return Listing(server, **{**keys, **more})


def view(name: str, *tools: str, **keys: Any) -> PeerView:
    given = {"enabled": True, "state": PeerState.READY, "cause": None, "reason": "discover_ok"}
    found = {"settled": True, "listing": listing(name, *tools), **given, **keys}
    return PeerView(name, **found)


def whole(*views: PeerView, policy: Any = "prefix") -> Catalogue:
    return merge(
        views or SERVERS,
        policy=policy,
        granted=Grants(tools={"lost": Grant("gone")}),
        now_s=0.0,
        startup_over=True,
        grace_s=300.0,
    ).catalogue


SERVERS = (
    view("a", "search", "add", "delete_all"),
    view("b", "search", "read"),
    view("c", "search"),
    view("gone", state=PeerState.UNAVAILABLE, cause=Cause.PROCESS, listing=None),
)
ONLY_B = slice_of(Profile(servers=("b",)))


@pytest.mark.parametrize(
    ("part", "admitted"),
    [
        (ALL, {"a/search", "a/add", "a/delete_all", "b/search", "b/read", "c/search"}),
        (ONLY_B, {"b/search", "b/read"}),
        (Slice("x", servers=("b", "c")), {"b/search", "b/read", "c/search"}),
        (Slice("x", allow=("search",)), {"a/search", "b/search", "c/search"}),
        (Slice("x", allow=("b/search", "a*")), {"a/search", "a/add", "a/delete_all", "b/search"}),
        (Slice("x", deny=("delete_*", "b/*")), {"a/search", "a/add", "c/search"}),
        (Slice("x", allow=("*",), deny=("search",)), {"a/add", "a/delete_all", "b/read"}),
        (Slice("x", servers=("a",), allow=("b/read",)), set()),
        (Slice("x", servers=("A",)), set()),
    ],
)
def test_globs_are_over_local_and_qualified_names_and_deny_wins(
    part: Slice, admitted: set[str]
) -> None:
    catalogue = sliced(whole(), part)
    assert {f"{one.server}/{one.local_name}" for one in catalogue.tools} == admitted
    assert {f"{one.server}/{one.local_name}" for one in catalogue.lookup.values()} == admitted
    every = [(one.server, one.local_name) for one in whole().tools]
    assert {f"{server}/{name}" for server, name in every if part.admits(server, name)} == admitted


def test_where_nothing_is_taken_away_the_catalogue_is_the_same_object() -> None:
    catalogue = whole()
    assert sliced(catalogue, ALL) is catalogue
    assert sliced(catalogue, slice_of(Profile(mode="search"))) is catalogue


def test_nothing_names_a_server_that_is_not_there() -> None:
    catalogue = sliced(whole(), ONLY_B)
    text = repr(msgspec.structs.asdict(catalogue))
    for other in ("'a'", "'c'", "'gone'", "a/", "c/", "add", "a:x", "lost"):
        assert other not in text, other
    assert catalogue.configured == {"b"}
    assert set(catalogue.listings) == {"b"}
    assert {one.name for one in catalogue.tools} == {"b/search", "read"}
    assert [one.uri for one in catalogue.resources] == ["b:x"]
    assert [one.name for one in catalogue.prompts] == ["b/greet"]
    assert catalogue.collisions == catalogue.prompt_collisions == ()
    assert {lost.detail for lost in catalogue.excluded} == {"no object", "no name", ELSEWHERE}


def test_a_name_of_somebody_else_is_unknown_and_nothing_close_to_it_is_suggested() -> None:
    found = find_tool(sliced(whole(), ONLY_B), "add")
    assert type(found).__name__ == "Unknown"
    assert "a/" not in repr(found)


def test_what_is_left_keeps_its_names_and_collisions() -> None:
    part = Slice("x", servers=("a", "b"))
    catalogue = sliced(whole(), part)
    assert [(one.name, one.owner, one.others) for one in catalogue.collisions] == [
        ("search", "a", (("b", "b/search"),))
    ]
    assert catalogue.lookup["search"].server == "a"
    without = sliced(whole(), msgspec.structs.replace(part, deny=("b/search",)))
    assert without.collisions == ()
    orphaned = sliced(whole(), msgspec.structs.replace(part, deny=("a/search",)))
    assert orphaned.collisions == ()
    assert "search" not in orphaned.lookup
    assert orphaned.lookup["b/search"].server == "b"


def test_who_is_missing_is_told_only_to_those_who_would_see_it() -> None:
    gone = sliced(whole(), Slice("x", servers=("gone",)))
    assert gone.missing == (Missing("gone", PeerState.UNAVAILABLE, Cause.PROCESS, "discover_ok"),)
    assert set(gone.idle_tools) == {"lost"}
    assert sliced(whole(), Slice("x", servers=("gone",), deny=("lost",))).idle_tools == {}


def test_the_digest_changes_with_what_is_seen_and_with_nothing_else() -> None:
    before = sliced(whole(), ONLY_B)
    elsewhere = whole(view("a", "search", "more"), *SERVERS[1:])
    assert sliced(elsewhere, ONLY_B).digest == before.digest
    here = whole(SERVERS[0], view("b", "search", "write"), *SERVERS[2:])
    assert sliced(here, ONLY_B).digest != before.digest
    few = Slice("x", servers=("b",), allow=("read",))
    denied = whole(SERVERS[0], view("b", "search", "read", "hidden"), *SERVERS[2:])
    assert sliced(denied, few).digest == sliced(whole(), few).digest


def test_prompts_and_resources_follow_their_server_not_the_globs_of_tools() -> None:
    catalogue = sliced(whole(), Slice("x", servers=("a",), allow=("add",)))
    assert [one.name for one in catalogue.prompts] == ["greet"]
    assert {one.uri for one in catalogue.resources} == {"file:///shared", "a:x"}
    assert set(catalogue.resource_lookup) == {"file:///shared", "a:x"}
    assert set(catalogue.prompt_lookup) >= {"greet", "a/greet"}
    assert {lost.kind for lost in catalogue.excluded} == {"prompt"}


def test_what_the_policy_reject_left_out_does_not_say_because_of_whom() -> None:
    catalogue = sliced(whole(policy="reject"), ONLY_B)
    rejected = [
        one for one in catalogue.excluded if one.reason is ExclusionReason.COLLISION_REJECTED
    ]
    assert rejected
    assert {one.detail for one in rejected} == {ELSEWHERE}


def test_keys_tell_profiles_apart_by_what_they_show() -> None:
    profiles = [
        Profile(servers=("a",)),
        Profile(servers=("b",)),
        Profile(servers=("a", "b")),
        Profile(tools=ToolFilter(allow=("a",))),
        Profile(tools=ToolFilter(deny=("a",))),
        Profile(servers=("a",), mode="search"),
        Profile(mode="search"),
    ]
    assert len({slice_of(one).key for one in profiles} | {""}) == len(profiles) + 1
    assert slice_of(Profile(servers=("a",))) == slice_of(Profile(servers=("a",)))
    assert slice_of(None) is slice_of(Profile()) is ALL
    assert slice_of(Profile(mode="search")).mode == "search"
