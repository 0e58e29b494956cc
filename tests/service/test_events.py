"""Whoever follows hears of every change, or that something was missed; never more than a bound."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.decisions.slices import Slice
from observant_host.errors import Unavailable
from observant_host.service.app import Service
from observant_host.service.events import KEPT, MAX_READERS, Events
from tests.service.api.serving import served
from tests.service.test_service import host_with
from tests.support.clock import ManualClock
from tests.support.hosts import add

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Source:
    """A host as far as events go."""

    def __init__(self) -> None:
        self.told: dict[str, Callable[[Any], object]] = {}
        self.servers: dict[str, Any] = {"a": {"name": "a"}, "b": {"name": "b"}}

    def __getattr__(self, name: str) -> Any:
        def follow(told: Callable[[Any], object]) -> Callable[[], None]:
            self.told[name] = told
            return lambda: self.told.pop(name, None) and None

        return follow

    def server(self, name: str) -> None:
        self.told["follow_servers"](name)

    def decision(self, server: str | None, text: str = "") -> None:
        self.told["follow_decisions"]({"server": server, "name": text})


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def events(source: Source) -> Events:
    host: Any = source
    return Events(host, clock=ManualClock())


def read(lines: list[bytes]) -> list[tuple[str, Any]]:
    found = []
    for line in lines:
        fields = dict(one.split(": ", 1) for one in line.decode().strip().split("\n"))
        found.append((fields["event"], json.loads(fields["data"])))
    return found


def last_id(lines: list[bytes]) -> str:
    return lines[-1].decode().partition("\n")[0].removeprefix("id: ")


def test_several_changes_of_one_server_are_told_as_one(events: Events, source: Source) -> None:
    reader = events.join()
    assert not reader.news.is_set()
    for name in ("a", "b", "a", "gone"):
        source.server(name)
    assert reader.news.is_set()
    assert read(reader.take()) == [
        ("server", {"name": "b"}),
        ("server", {"name": "a"}),
        ("server", {"name": "gone", "removed": True}),
    ]
    assert reader.take() == []


def test_whoever_comes_back_in_time_missed_nothing(events: Events, source: Source) -> None:
    first = events.join()
    source.decision("a", "one")
    known = last_id(first.take())
    first.leave()
    source.decision("a", "two")
    again = events.join(known)
    assert again.news.is_set()
    assert [data["name"] for _, data in read(again.take())] == ["two"]


@pytest.mark.parametrize("known", ["", "x", "other-1", "-1", "1"])
def test_whoever_comes_from_elsewhere_reads_everything_again(
    events: Events, source: Source, known: str
) -> None:
    events.join()
    source.decision("a")
    reader = events.join(known)
    assert read(reader.take()) == [("reload", {})]
    assert reader.take() == []


def test_ids_that_are_still_to_come_are_not_believed(events: Events, source: Source) -> None:
    reader = events.join()
    source.decision("a")
    run = last_id(reader.take()).rpartition("-")[0]
    for number in ("99", "9" * 30, "-1", "x"):
        assert read(events.join(f"{run}-{number}").take()) == [("reload", {})]


def test_whoever_reads_too_slowly_is_told_so_and_costs_nothing(
    events: Events, source: Source
) -> None:
    slow, quick = events.join(), events.join()
    for number in range(KEPT + 1):
        source.decision("a", str(number))
        assert len(quick.take()) == 1
    assert read(slow.take()) == [("reload", {})]
    source.decision("a", "next")
    assert [data["name"] for _, data in read(slow.take())] == ["next"]


def test_what_does_not_exist_for_a_reader_is_not_told(events: Events, source: Source) -> None:
    reader = events.join(part=Slice("k", servers=("a",)))
    source.server("b")
    source.decision("b")
    source.decision(None, "the host")
    source.server("a")
    assert [kind for kind, _ in read(reader.take())] == ["decision", "server"]


def test_only_so_many_may_listen(events: Events) -> None:
    readers = [events.join() for _ in range(MAX_READERS)]
    with pytest.raises(Unavailable, match="listen"):
        events.join()
    readers[0].leave()
    readers[0].leave()
    events.join()


def test_nothing_is_followed_until_somebody_listens_and_after_the_end(
    events: Events, source: Source
) -> None:
    assert source.told == {}
    events.join()
    assert len(source.told) == 4
    events.close()
    events.close()
    assert source.told == {}


async def test_a_closed_service_follows_its_host_no_more(tmp_path: Path) -> None:
    host = host_with(tmp_path, telemetry=None)
    add(host, "s", {"tools": "echo"})
    service = Service(host)
    await host.open()
    service.events.join()
    await host.settled()
    await service.close()
    before = service.events.last
    assert before > 0
    await host.close()
    assert service.events.last == before


async def test_changes_come_over_the_network_as_they_happen(tmp_path: Path) -> None:
    host = host_with(tmp_path, telemetry=None)
    add(host, "s", {"tools": "echo,fail"})
    async with served(host, tmp_path) as (api, _), asyncio.timeout(30):
        async with api.http.get(f"{api.base}/events") as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            assert stream.headers["Cache-Control"] == "no-store"
            assert (await stream.content.readline()).startswith(b":")
            await api.ok("POST", "/servers/s/hold", json={"reason": "a look"})
            await api.ok("POST", "/tools/call", json={"name": "fail"})
            await api.ok("POST", "/servers/s/disable", json={"tool": "echo"})
            seen: dict[str, Any] = {}
            while len(seen) < 4:
                line = (await stream.content.readline()).decode()
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ").strip()
                    data = (await stream.content.readline()).decode()
                    seen[kind] = json.loads(data.removeprefix("data: "))
        assert set(seen) == {"server", "call", "decision", "catalogue"}
        assert (seen["call"]["name"], seen["call"]["outcome"]) == ("fail", "tool_error")
        assert seen["server"]["name"] == "s"


async def test_a_stream_ends_with_the_host(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    async with asyncio.timeout(30):
        async with served(host, tmp_path) as (api, _):
            stream = await api.http.get(f"{api.base}/events")
            await host.close()
            assert b"event" not in await stream.read()
