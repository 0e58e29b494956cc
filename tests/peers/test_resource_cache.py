"""What is kept, for how long, in how much room, and what a change makes of it."""

from __future__ import annotations

import time

from msgspec import Raw

from observant_host.decisions.freshness import EVERYBODY, Found, Key, fresh_until
from observant_host.peers.resource_cache import MAX_ENTRY_BYTES, ResourceCache
from tests.support.clock import ManualClock


class Shelf(ResourceCache):
    """Keeps under short names."""

    def __init__(self, **bounds: int) -> None:
        self.clock = ManualClock()
        super().__init__(self.clock, **bounds)

    @staticmethod
    def key(uri: str, *, server: str = "s", context: str = EVERYBODY) -> Key:
        return Key(server, context, "2026-07-28", "resources/read", uri)

    def put(self, uri: str, data: bytes = b"{}", *, ttl_ms: int = 5000, server: str = "s") -> bool:
        until = fresh_until(self.clock.monotonic(), ttl_ms)
        key = self.key(uri, server=server)
        return self.keep(key, Raw(data), until_s=until, asked_at=self.moment(server))

    def has(self, uri: str, *, server: str = "s") -> bool:
        return self.find(self.key(uri, server=server))[0] is Found.HIT


async def test_an_entry_is_served_while_fresh_and_not_a_moment_longer() -> None:
    shelf = Shelf()
    assert shelf.find(shelf.key("a")) == (Found.MISS, None)
    assert shelf.put("a", b'{"n":1}')
    await shelf.clock.advance(4.999)
    found, raw = shelf.find(shelf.key("a"))
    assert (found, bytes(raw or b"")) == (Found.HIT, b'{"n":1}')
    await shelf.clock.advance(0.001)
    assert shelf.find(shelf.key("a")) == (Found.STALE, None)
    assert (len(shelf), shelf.bytes) == (0, 0)


async def test_what_is_stale_at_once_or_too_large_is_never_kept() -> None:
    shelf = Shelf()
    assert not shelf.put("a", ttl_ms=0)
    assert not shelf.put("b", b"x" * (MAX_ENTRY_BYTES + 1))
    assert len(shelf) == 0


async def test_room_is_bounded_in_entries_and_bytes_least_recently_used_first_out() -> None:
    shelf = Shelf(max_entries=2, max_bytes=100)
    shelf.put("a")
    shelf.put("b")
    assert shelf.has("a")
    shelf.put("c")
    assert [shelf.has(uri) for uri in "abc"] == [True, False, True]
    shelf.put("big", b"x" * 97)
    assert [shelf.has(uri) for uri in ("a", "c", "big")] == [False, True, True]
    assert shelf.bytes == 99
    shelf.put("c", b"replaced")
    assert (len(shelf), shelf.bytes) == (1, 8)


async def test_an_update_drops_what_it_touches_of_that_server_only() -> None:
    shelf = Shelf()
    for uri in ("file:///d/", "file:///d/a", "file:///e"):
        shelf.put(uri)
        shelf.put(uri, server="other")
    shelf.updated("s", "file:///d/a")
    assert [shelf.has(uri) for uri in ("file:///d/", "file:///d/a", "file:///e")] == [
        False,
        False,
        True,
    ]
    assert shelf.has("file:///d/a", server="other")


async def test_what_was_asked_for_before_a_change_is_not_kept_after_it() -> None:
    shelf = Shelf()
    moment = shelf.moment("s")
    shelf.updated("s", "file:///a")
    until = shelf.clock.monotonic() + 5
    assert not shelf.keep(shelf.key("file:///a"), Raw(b"{}"), until_s=until, asked_at=moment)
    assert shelf.put("file:///a")


async def test_a_flood_of_updates_costs_little_and_forgets_everything() -> None:
    shelf = Shelf()
    for number in range(1000):
        shelf.put(f"file:///{number}")
    began = time.process_time()
    for number in range(20_000):
        shelf.updated("s", f"other:///{number}")
    assert time.process_time() - began < 2.0
    assert len(shelf) == 0
    await shelf.clock.advance(2)
    shelf.put("file:///a")
    shelf.updated("s", "other:///1")
    assert shelf.has("file:///a")


async def test_a_forgotten_server_leaves_nothing_behind() -> None:
    shelf = Shelf()
    shelf.put("a")
    shelf.put("a", server="other")
    shelf.forget("s")
    assert not shelf.has("a")
    assert shelf.has("a", server="other")
