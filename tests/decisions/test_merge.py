"""Many listings, one catalogue: every name once, every loss told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observant_host.decisions.catalogue import Collision, Missing, PeerView
from observant_host.decisions.merge import EMPTY, Clash
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


def test_a_listing_of_a_view_is_the_last_good_one() -> None:
    assert listing("a", "x").tools[0].name == "x"
