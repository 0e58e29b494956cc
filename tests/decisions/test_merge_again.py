"""A merge that goes on from the one before: as merged afresh, with nothing rebuilt needlessly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from observant_host.decisions.api_names import cleaned
from observant_host.decisions.names import Grant, Grants
from tests.decisions.catalogues import (
    disabled,
    down,
    merged,
    refused,
    starting,
    tool,
    up,
)

if TYPE_CHECKING:
    from observant_host.decisions.catalogue import Catalogue, PeerView
    from observant_host.decisions.merge import Merged


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
