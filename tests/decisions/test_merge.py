"""Many listings, one catalogue: every name once, every loss told, nothing rebuilt needlessly."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observant_host.decisions.api_names import cleaned
from observant_host.decisions.catalogue import Catalogue, Collision, Missing, PeerView
from observant_host.decisions.merge import EMPTY, Clash, Merged
from observant_host.decisions.names import Grant, Grants
from observant_host.decisions.routes import find_tool
from observant_host.decisions.terms import Cause, PeerState
from tests.decisions.catalogues import (
    catalogue,
    disabled,
    down,
    listing,
    merged,
    refused,
    starting,
    tool,
    up,
)


def offered(found: Any) -> list[tuple[str, str, str]]:
    return [(e.name, e.server, e.local_name) for e in found.tools]


def test_the_first_keeps_the_bare_name_and_the_other_is_listed_under_its_server() -> None:
    found = catalogue(up("a", "search"), up("b", "search", "get"))
    assert offered(found) == [
        ("search", "a", "search"),
        ("b/search", "b", "search"),
        ("get", "b", "get"),
    ]
    assert found.collisions == (Collision("search", "a", (("b", "b/search"),)),)


def test_every_spelling_leads_to_its_entry() -> None:
    found = catalogue(up("a", "search"), up("b", "search"))
    mine, other = found.tools
    assert found.lookup["search"] is found.lookup["a/search"] is mine
    assert found.lookup["b/search"] is found.lookup[other.api_name] is other
    assert other.api_name.startswith("b_search_")


def test_an_api_name_shown_before_the_bare_name_was_granted_goes_on_working() -> None:
    early = catalogue(starting("a"), up("b", "get"), startup_over=False)
    (entry,) = early.tools
    assert entry.name == "b/get"
    later = catalogue(refused("a"), up("b", "get"), startup_over=False)
    assert later.tools[0].name == "get"
    assert find_tool(later, entry.api_name) is later.tools[0]


def test_a_real_tool_named_like_a_qualified_one_overwrites_nothing() -> None:
    found = catalogue(up("a", "b/search", "search"), up("b", "search"))
    assert offered(found) == [
        ("a/b/search", "a", "b/search"),
        ("search", "a", "search"),
        ("b/search", "b", "search"),
    ]
    assert found.lookup["b/search"].server == "b"


def test_two_ways_to_the_same_joined_text_stay_two_tools() -> None:
    found = catalogue(
        up("other", "status", "_status"), up("acme_", "status"), up("acme", "_status")
    )
    assert [e.name for e in found.tools][2:] == ["acme_/status", "acme/_status"]
    assert len({e.api_name for e in found.tools}) == 4


def test_the_policy_qualified_qualifies_everything() -> None:
    found = catalogue(up("a", "search"), up("b", "get"), policy="qualified")
    assert [e.name for e in found.tools] == ["a/search", "b/get"]
    assert "search" not in found.lookup
    assert found.collisions == ()


def test_the_policy_reject_excludes_the_newcomer_and_names_the_clash() -> None:
    after = merged(
        up("a", "search", prompts=("ask",)),
        up("b", "search", "get", prompts=("ask",)),
        policy="reject",
    )
    found = after.catalogue
    assert offered(found) == [("search", "a", "search"), ("get", "b", "get")]
    assert after.clashes == (
        Clash("tool", "search", "a", "b"),
        Clash("prompt", "ask", "a", "b"),
    )
    assert [(e.server, e.local_name, e.reason, e.kind) for e in found.excluded] == [
        ("b", "search", "collision_rejected", "tool"),
        ("b", "ask", "collision_rejected", "prompt"),
    ]
    assert found.collisions == ()


def test_under_reject_an_absent_owner_keeps_its_name_but_is_no_clash() -> None:
    held = Grants({"search": Grant("a")})
    after = merged(refused("a"), up("b", "search"), policy="reject", granted=held)
    assert after.clashes == ()
    assert [e.reason for e in after.catalogue.excluded] == ["collision_rejected"]


def test_under_reject_two_newcomers_for_a_name_of_an_absent_third_do_clash() -> None:
    held = Grants({"search": Grant("c")})
    after = merged(
        up("a", "search"), up("b", "search"), refused("c"), policy="reject", granted=held
    )
    assert after.clashes == (Clash("tool", "search", "a", "b"),)


def test_a_server_that_went_down_keeps_its_names_unroutable() -> None:
    view = up("a", "search", prompts=("ask",), resources=("file:///x",))
    before = merged(view, up("b", "search"))
    after = merged(down(view), up("b", "search"), before=before).catalogue
    assert [(e.name, e.routable) for e in after.tools] == [("search", False), ("b/search", True)]
    assert not after.prompts[0].routable
    assert not after.resources[0].routable
    assert after.missing == ()
    assert after.digest == before.catalogue.digest
    assert after.version == before.catalogue.version + 1


def test_a_degraded_server_takes_calls_unless_it_is_silent() -> None:
    view = up("a", "x")
    degraded = PeerView("a", True, PeerState.DEGRADED, None, "", True, view.listing)
    assert catalogue(degraded).tools[0].routable
    silent = msgspec.structs.replace(degraded, answers=False)
    assert not catalogue(silent).tools[0].routable


def test_a_server_that_has_not_listed_is_missing_and_its_name_waits_for_it() -> None:
    found = catalogue(
        refused("a"), disabled("off"), up("b", "search"), granted=Grants({"search": Grant("a")})
    )
    assert found.missing == (
        Missing("a", PeerState.UNAVAILABLE, Cause.POLICY, "ambiguous_timeout"),
    )
    assert offered(found) == [("b/search", "b", "search")]
    assert found.idle_tools == {"search": Grant("a")}
    assert found.configured == {"a", "off", "b"}


def test_a_disabled_server_offers_nothing_and_gives_its_names_up() -> None:
    before = merged(up("a", "search"))
    after = merged(disabled("a", "search"), granted=before.grants)
    assert after.catalogue.tools == ()
    assert after.grants.tools == {"search": Grant("a", 1000.0)}
    assert [(d.kind, d.change.what) for d in after.decisions] == [("tool", "given_up")]
    assert after.wake_at == 1300.0


@pytest.mark.parametrize("how", [{"truncated": "the cursor repeats"}, {"complete": False}])
def test_a_list_cut_short_gives_no_name_up(how: dict[str, Any]) -> None:
    after = merged(up("a", "get", **how), granted=Grants({"search": Grant("a")}))
    assert after.catalogue.idle_tools == {"search": Grant("a")}


def test_spellings_that_come_to_meet_are_told_apart_as_if_merged_afresh() -> None:
    hashed = cleaned("b/x")
    first = merged(up("a", "x"), up("b", "y"), up("c"))
    assert first.standing.tools.plain
    for views in (
        (up("a", "x"), up("b", "x"), up("c", hashed)),  # a name like another's api name
        (up("a", "x"), up("b", "x"), up("c")),
    ):
        on = merged(*views, before=first)
        assert content(on) == content(merged(*views, granted=first.grants))
        first = on
    held = merged(up("a", "x"), up("b"), starting("c"), granted=Grants({hashed: Grant("c")}))
    views = (up("a", "x"), up("b", "x"), starting("c"))  # an api name like a name that is held
    on = merged(*views, before=held)
    assert not on.standing.tools.plain
    assert content(on) == content(merged(*views, granted=held.grants))
    before = (up("a", "x"), up("b", "x"))
    taken = merged(*before, up("c"))
    views = (*before, up("c", hashed))  # a name that is granted, like an api name that stands
    on = merged(*views, before=taken)
    assert on.catalogue.tools[1].api_name != hashed
    assert content(on) == content(merged(*views, granted=taken.grants))


def test_collisions_are_told_in_the_order_of_the_present_lists() -> None:
    first = merged(up("a", "x", "y"), up("b", "x", "y"))
    for listed in (("y", "x"), ("x", "y", "z"), ("y", "z", "x")):
        views = (up("a", *listed), up("b", "x", "y"))
        on = merged(*views, before=first)
        assert content(on) == content(merged(*views, granted=first.grants))
        first = on


def test_an_api_name_of_an_absent_owner_is_not_given_away() -> None:
    hashed = catalogue(up("a", "x"), up("b", "x")).tools[1].api_name
    held = Grants({hashed: Grant("gone_for_now"), "x": Grant("a")})
    found = catalogue(up("a", "x"), up("b", "x"), refused("gone_for_now"), granted=held)
    assert found.tools[1].api_name != hashed


def test_prompts_are_named_like_tools_and_apart_from_them() -> None:
    found = catalogue(up("a", "ask"), up("b", prompts=("ask",)), up("c", prompts=("ask",)))
    assert [(p.name, p.server) for p in found.prompts] == [("ask", "b"), ("c/ask", "c")]
    assert found.prompt_lookup["b/ask"].server == "b"
    assert found.prompt_collisions == (Collision("ask", "b", (("c", "c/ask"),)),)
    assert found.collisions == ()


def test_the_first_in_config_order_owns_a_uri_and_the_others_are_told() -> None:
    found = catalogue(
        up("a", resources=("file:///x",), templates=("file:///{x}",)),
        up("b", resources=("file:///x", "file:///y"), templates=("file:///{x}",)),
    )
    assert [(r.uri, r.server) for r in found.resources] == [
        ("file:///x", "a"),
        ("file:///{x}", "a"),
        ("file:///y", "b"),
    ]
    assert set(found.resource_lookup) == {"file:///x", "file:///y"}
    assert [(e.server, e.local_name, e.reason, e.kind) for e in found.excluded] == [
        ("b", "file:///x", "collision_rejected", "resource"),
        ("b", "file:///{x}", "collision_rejected", "resource"),
    ]
    assert "server=b" in found.excluded[0].detail


def test_what_servers_lost_is_carried_over() -> None:
    found = catalogue(up("a", "x", denied=("drop",)), disabled("b", "y"))
    assert [(e.server, e.local_name) for e in found.excluded] == [("a", "drop")]


def test_nothing_changed_gives_the_same_catalogue_object() -> None:
    views = [up("a", "x", resources=("u",)), up("b", "x", prompts=("p",)), refused("c")]
    before = merged(*views)
    after = merged(*views, before=before)
    assert after.catalogue is before.catalogue
    assert after.decisions == ()


def test_a_new_life_that_lists_the_same_changes_nothing() -> None:
    before = merged(up("a", "x"))
    after = merged(up("a", "x"), before=before)
    assert after.catalogue is before.catalogue


def test_one_servers_change_rebuilds_no_entry_of_the_others() -> None:
    others = [up(f"s{i}", *(f"t{i}_{j}" for j in range(5)), prompts=("p",)) for i in range(3)]
    before = merged(*others, up("z", "old"))
    after = merged(*others, up("z", "new"), before=before).catalogue
    assert all(
        new is old for new, old in zip(after.tools[:15], before.catalogue.tools[:15], strict=True)
    )
    assert all(new is old for new, old in zip(after.prompts, before.catalogue.prompts, strict=True))
    assert after.listings["s0"] is before.catalogue.listings["s0"]
    assert after.digest != before.catalogue.digest
    assert after.version == before.catalogue.version + 1


def test_the_digest_is_over_what_is_offered_under_which_name() -> None:
    plain = catalogue(up("a", "x"), up("b", "x"))
    assert plain.digest.startswith("sha256:")
    assert plain.digest == catalogue(up("a", "x"), up("b", "x"), now_s=5.0).digest
    held = Grants({"x": Grant("b")})
    others = [
        catalogue(up("a", "x"), up("b", "x"), granted=held),
        catalogue(up("b", "x"), up("a", "x")),
        catalogue(up("a", tool("x", title="y")), up("b", "x")),
        catalogue(up("a", "x", resources=("u",)), up("b", "x")),
        EMPTY,
    ]
    assert plain.digest not in {other.digest for other in others}


def test_a_listing_is_hashed_with_its_borders() -> None:
    whole = catalogue(up("a", tool("x"), tool("y")))
    parts = catalogue(up("a", tool("x")), up("b", tool("y")))
    assert whole.digest != parts.digest


# Properties

NAMES = st.lists(
    st.sampled_from(["search", "get", "b/get", "a.b", "a_b", "a b", "x" * 70, "ü", "a/search"]),
    unique=True,
)
VIEWS = st.permutations(["a", "b", "c"]).flatmap(
    lambda order: st.tuples(
        *(
            st.one_of(
                st.builds(lambda names, s=server: up(s, *names, prompts=tuple(names)), NAMES),
                st.builds(lambda names, s=server: down(up(s, *names)), NAMES),
                st.just(starting(server)),
                st.just(refused(server)),
                st.just(disabled(server)),
            )
            for server in order
        )
    )
)


@settings(max_examples=50, deadline=None)
@given(
    steps=st.lists(VIEWS, min_size=1, max_size=4),
    policy=st.sampled_from(["prefix", "qualified", "reject"]),
    over=st.booleans(),
)
def test_no_two_entries_share_a_name_or_an_api_name_and_each_leads_home(
    steps: list[tuple[PeerView, ...]], policy: str, *, over: bool
) -> None:
    before = None
    for views in steps:
        before = merged(*views, policy=policy, before=before, startup_over=over)
        made = before.catalogue
        for kept, found in ((made.tools, made.lookup), (made.prompts, made.prompt_lookup)):
            assert len({e.name for e in kept}) == len({e.api_name for e in kept}) == len(kept)
            for e in kept:
                spellings = (e.name, e.api_name, f"{e.server}/{e.local_name}")
                assert all(found[spelled] is e for spelled in spellings)


MEETING_NAMES = st.lists(
    st.sampled_from(["search", "get", "b/get", "a.b", "a b", cleaned("b/search"), cleaned("a.b")]),
    unique=True,
)
VARIANTS = st.sampled_from(["", "another title"])


@st.composite
def one_view(draw: st.DrawFn, server: str) -> PeerView:
    """Listing anew may give the same, the same names with other content, or other names."""
    title = draw(VARIANTS)
    names = draw(MEETING_NAMES)
    listed = [tool(name, title=title) if title else tool(name) for name in names]
    resources = tuple(draw(st.lists(st.sampled_from(["u", "v"]), unique=True)))
    whole = {"prompts": tuple(names[:2]), "resources": resources, "templates": resources[:1]}
    view = up(server, *listed, **whole, complete=draw(st.booleans()))
    match draw(st.sampled_from(["up", "up", "down", "starting", "refused", "disabled"])):
        case "down":
            return down(view)
        case "starting":
            return starting(server)
        case "refused":
            return refused(server)
        case "disabled":
            return disabled(server, *listed)
        case _:
            return view


SERVERS = ("a", "b", "c", "d")
ORDERS = st.sampled_from([SERVERS, SERVERS, SERVERS, SERVERS[::-1], SERVERS[:3]])
HISTORY = st.lists(
    st.tuples(
        st.tuples(*map(one_view, SERVERS)),
        st.sets(st.sampled_from(SERVERS)),
        ORDERS,
        st.floats(0, 400),
        st.booleans(),
        st.sampled_from(["prefix", "prefix", "qualified", "reject"]),
    ),
    min_size=2,
    max_size=4,
)
HELD = st.dictionaries(
    st.sampled_from(["search", "get", "gone", cleaned("b/search"), "a.b"]),
    st.builds(
        Grant,
        st.sampled_from([*SERVERS, "left"]),
        st.one_of(st.none(), st.floats(0, 1000, allow_nan=False)),
    ),
)


def content(found: Merged) -> list[Any]:
    """All of it but how it came to be."""
    kept = found.catalogue
    return [
        *(getattr(kept, f) for f in kept.__struct_fields__ if f not in ("version", "listings")),
        {server: listed.digest for server, listed in kept.listings.items()},
        found.grants,
        found.decisions,
        found.clashes,
        found.wake_at,
    ]


def by_name(kept: Catalogue) -> dict[tuple[str, str], Any]:
    every: tuple[Any, ...] = (*kept.tools, *kept.prompts)
    return {(type(e).__name__, e.name): e for e in every}


@settings(max_examples=20, deadline=None)
@given(history=HISTORY, held=HELD)
def test_going_on_from_the_merge_before_gives_what_merging_afresh_gives(
    history: list[Any], held: dict[str, Grant]
) -> None:
    before: Merged | None = None
    views: dict[str, PeerView] = {}
    now, granted = 1000.0, Grants(held, held)
    for every, others, order, passed, over, policy in history:
        now += passed
        views |= {one.name: one for one in every if one.name in others or one.name not in views}
        known = by_name(before.catalogue) if before is not None else {}
        shown = [views[server] for server in order]
        how: dict[str, Any] = {"policy": policy, "now_s": now, "startup_over": over}
        on = merged(*shown, before=before, granted=granted, **how)
        assert content(on) == content(merged(*shown, granted=granted, **how))
        found = by_name(on.catalogue)
        kept = known.keys() & found.keys()
        assert (on.changes.added, on.changes.removed, on.changes.changed) == (
            len(found) - len(kept),
            len(known) - len(kept),
            sum(known[key] != found[key] for key in kept),
        )
        before, granted = on, on.grants


def test_a_listing_of_a_view_is_the_last_good_one() -> None:
    assert listing("a", "x").tools[0].name == "x"
