"""The current catalogue: swapped at once, each change told, grants handed on, clashes refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from observant_host.decisions.merge import EMPTY
from observant_host.decisions.names import Grant, Grants
from observant_host.errors import ConfigError, NameCollision
from observant_host.routing import catalogue_store
from observant_host.routing.catalogue_store import CatalogueStore
from observant_host.telemetry.setup import capturing
from observant_host.telemetry.vocabulary import CatalogueRefresh, NameDecision
from tests.decisions.catalogues import disabled, down, refused, starting, up
from tests.support.clock import START_WALL_NS, ManualClock

if TYPE_CHECKING:
    from observant_host.config import CollisionPolicy
    from observant_host.decisions.catalogue import Catalogue

NOW = START_WALL_NS / 1e9


class Bench:
    def __init__(
        self,
        policy: CollisionPolicy = "prefix",
        granted: Grants | None = None,
        startup_deadline_s: float = 0.0,
    ) -> None:
        telemetry, self.told = capturing()
        self.clock = ManualClock()
        self.remembered: list[Grants] = []
        self.swapped: list[Catalogue] = []
        self.store = CatalogueStore(
            policy=policy,
            rename_grace_s=300,
            telemetry=telemetry,
            clock=self.clock,
            startup_deadline_s=startup_deadline_s,
            granted=granted,
            remember=self.remembered.append,
            on_change=self.swapped.append,
        )

    def facts(self, kind: type) -> list[Any]:
        return [d.fact for d in self.told if isinstance(d.fact, kind)]


def test_the_store_starts_empty_and_unpublished() -> None:
    store = Bench().store
    assert store.current is EMPTY
    assert not store.published
    assert store.wake_at is None


def test_a_refresh_swaps_tells_and_remembers() -> None:
    bench = Bench()
    views = [up("a", "x", "y"), up("b", "x", prompts=("p",))]
    found = bench.store.refresh(views, peer="b", trigger="boot")
    assert bench.store.current is found
    assert bench.swapped == [found]
    assert bench.remembered == [Grants({"x": Grant("a"), "y": Grant("a")}, {"p": Grant("b")})]
    (fact,) = bench.facts(CatalogueRefresh)
    assert (fact.peer, fact.trigger, fact.added, fact.removed, fact.changed) == (
        "b",
        "boot",
        4,
        0,
        0,
    )
    assert (fact.collisions, fact.excluded, fact.version) == (1, 0, 1)
    assert fact.digest == found.digest
    assert bench.store.collisions_of("b") == 1
    assert bench.store.collisions_of("a") == 0


def test_a_refresh_without_a_change_swaps_and_remembers_nothing() -> None:
    bench = Bench()
    views = [up("a", "x")]
    first = bench.store.refresh(views)
    assert bench.store.refresh(views) is first
    assert len(bench.swapped) == len(bench.remembered) == 1


def test_what_was_added_removed_and_changed_is_counted() -> None:
    bench = Bench()
    a = up("a", "x", "y")
    bench.store.refresh([a, up("b", "z")])
    bench.store.refresh([down(a), up("b", "new", truncated="the cursor repeats")], peer="b")
    fact = bench.facts(CatalogueRefresh)[-1]
    assert (fact.added, fact.removed, fact.changed) == (1, 1, 2)
    assert fact.truncated == "the cursor repeats"


def test_until_published_names_wait_for_those_before() -> None:
    bench = Bench()
    views = [starting("a"), up("b", "x")]
    assert bench.store.refresh(views).tools[0].name == "b/x"
    assert bench.store.publish(views).tools[0].name == "x"
    assert bench.store.published
    assert bench.store.refresh([up("a", "x"), up("b", "x")]).lookup["x"].server == "b"


async def test_servers_added_after_an_early_publication_still_wait_for_those_before() -> None:
    bench = Bench(startup_deadline_s=10)
    bench.store.publish([])
    assert bench.store.wake_at == pytest.approx(NOW + 10)
    views = [starting("a"), starting("b"), up("c", "x")]
    assert bench.store.refresh(views).tools[0].name == "c/x"
    views[0] = up("a", "x")
    assert bench.store.refresh(views).lookup["x"].server == "a"
    late = [starting("a"), starting("b"), up("c", "y")]
    assert bench.store.refresh(late).tools[0].name == "c/y"
    await bench.clock.advance(10)
    assert bench.store.refresh(late).tools[0].name == "y"
    assert bench.store.wake_at is None


def test_a_start_up_that_ran_into_its_deadline_is_over_at_publication() -> None:
    bench = Bench(startup_deadline_s=0)
    assert bench.store.publish([starting("a"), up("b", "x")]).tools[0].name == "x"
    assert bench.store.wake_at is None


def test_reject_refuses_the_first_publication_naming_both_servers_and_the_tool() -> None:
    bench = Bench("reject")
    views = [up("a", "search"), up("b", "search", prompts=("p",)), up("c", prompts=("p",))]
    bench.store.refresh(views)
    with pytest.raises(NameCollision) as caught:
        bench.store.publish(views)
    assert isinstance(caught.value, ConfigError)
    assert len(caught.value.problems) == 2
    assert 'tool "search" is listed by a and by b' in caught.value.problems[0]
    assert 'prompt "p" is listed by b and by c' in caught.value.problems[1]


def test_reject_later_excludes_the_newcomer_and_runs_on() -> None:
    bench = Bench("reject")
    bench.store.publish([up("a", "search"), starting("b")])
    found = bench.store.refresh([up("a", "search"), up("b", "search", "x")])
    assert [t.name for t in found.tools] == ["search", "x"]
    assert [e.reason for e in found.excluded] == ["collision_rejected"]
    assert bench.store.publish([up("a", "search"), up("b", "search", "x")]) is found


async def test_a_name_moves_after_its_grace_as_a_decision() -> None:
    bench = Bench(granted=Grants({"x": Grant("a")}))
    views = [disabled("a"), up("b", "x")]
    bench.store.publish(views)
    assert bench.store.wake_at == NOW + 300
    assert bench.remembered[-1].tools == {"x": Grant("a", NOW)}
    await bench.clock.advance(300)
    assert bench.store.refresh(views).tools[0].name == "x"
    assert bench.store.wake_at is None
    assert [(f.what, f.name, f.peer, f.reason) for f in bench.facts(NameDecision)] == [
        ("given_up", "x", "a", "tool: disabled"),
        ("moved", "x", "b", "tool: from a"),
    ]


def test_of_plain_first_grants_only_a_bounded_number_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue_store, "MAX_PLAIN_GRANTS_TOLD", 2)
    bench = Bench()
    bench.store.refresh([up("a", "x", "y"), up("b", "x"), refused("c")])
    assert [f.name for f in bench.facts(NameDecision)] == ["x"]  # contested: told at once
    bench.store.publish([up("a", "x", "y"), up("b", "x"), refused("c")])
    bench.told.clear()
    bench.store.refresh([up("a", "x", "y"), up("b", "x"), up("c", "1", "2", "3")])
    assert [f.name for f in bench.facts(NameDecision)] == ["1", "2"]


def test_a_store_needs_nobody_listening() -> None:
    telemetry, _ = capturing()
    store = CatalogueStore(
        policy="prefix", rename_grace_s=1, telemetry=telemetry, clock=ManualClock()
    )
    assert store.refresh([up("a", "x")]).tools[0].name == "x"


def test_where_two_servers_change_at_once_each_list_that_was_cut_short_is_named() -> None:
    bench = Bench()
    views = [
        up("a", "one", truncated="the cursor repeats"),
        up("b", "two"),
        up("c", "three", truncated="too many pages"),
    ]
    bench.store.refresh(views)
    assert bench.facts(CatalogueRefresh)[-1].truncated == (
        "a: the cursor repeats; c: too many pages"
    )
    bench.store.refresh([*views[:2], up("c", "four", truncated="too many items")])
    assert bench.facts(CatalogueRefresh)[-1].truncated == "c: too many items"
