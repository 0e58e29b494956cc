"""Contents that servers said may be given out again for a while: bounded, and forgotten in time.

One cache for a host, so that what a server calls public is fetched once though several entries of
the configuration lead to it. Everything else stays with its entry and its authorization.

Source: MCP 2026-07-28 server/utilities/caching.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from observant_host.decisions.freshness import Found, Key, is_fresh, touches

if TYPE_CHECKING:
    from observant_host.timing.clock import Clock

MAX_ENTRIES: Final = 1024
MAX_BYTES: Final = 32 * 1024 * 1024
"""Of all contents together: what a host may hold without anybody noticing."""
MAX_ENTRY_BYTES: Final = 1024 * 1024
"""A larger one would push a hundred small ones out."""

CLOSE_LOOKS: Final = 20
"""Updates of one server in a second that are compared with each entry; more of them make
everything of it stale, which costs nothing per update."""


class Kept(msgspec.Struct, frozen=True):
    """Contents as they came, fresh until then (monotonic seconds)."""

    raw: Raw
    until_s: float


class ResourceCache:
    """Least recently used first out. For the loop's thread."""

    def __init__(
        self, clock: Clock, *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
    ) -> None:
        self._clock = clock
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Key, Kept] = OrderedDict()
        self._changes: dict[str, int] = {}
        self._bursts: dict[str, tuple[float, int]] = {}
        self._counts: dict[str, int] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, *keys: Key) -> tuple[Found, Raw | None]:
        """The first fresh entry of these keys; what is stale is dropped on the way."""
        found = Found.MISS
        for key in keys:
            kept = self._entries.get(key)
            if kept is None:
                continue
            if is_fresh(kept.until_s, self._clock.monotonic()):
                self._entries.move_to_end(key)
                return Found.HIT, kept.raw
            self._drop(key)
            found = Found.STALE
        return found, None

    def moment(self, server: str) -> int:
        """Taken before asking: what was asked for before a change is not kept after it."""
        return self._changes.get(server, 0)

    def keep(self, key: Key, raw: Raw, *, until_s: float, asked_at: int) -> bool:
        """Keep a result asked for at `moment`; False where it may not be or is too large."""
        data = bytes(raw)
        late = asked_at != self.moment(key.server)
        if late or len(data) > MAX_ENTRY_BYTES or not is_fresh(until_s, self._clock.monotonic()):
            return False
        self._drop(key)
        self._entries[key] = Kept(Raw(data), until_s)  # a copy: the original holds its whole frame
        self.bytes += len(data)
        self._counts[key.server] = self._counts.get(key.server, 0) + 1
        while self.bytes > self._max_bytes or len(self._entries) > self._max_entries:
            self._drop(next(iter(self._entries)))
        return True

    def updated(self, server: str, uri: str) -> None:
        """The server says that this resource, or a part of it, changed."""
        if self._bursting(server):
            self.forget(server)
            return
        self._changes[server] = self.moment(server) + 1
        mine = [k for k in self._entries if k.server == server and touches(uri, k.subject)]
        for key in mine:
            self._drop(key)

    def forget(self, server: str) -> None:
        """Nothing of this server is known any more: its life ended, or changes come in floods."""
        self._changes[server] = self.moment(server) + 1
        if self._counts.get(server):
            for key in [key for key in self._entries if key.server == server]:
                self._drop(key)

    def _bursting(self, server: str) -> bool:
        now = self._clock.monotonic()
        began, count = self._bursts.get(server, (now, 0))
        if now - began >= 1.0:
            began, count = now, 0
        self._bursts[server] = (began, count + 1)
        return count >= CLOSE_LOOKS

    def _drop(self, key: Key) -> None:
        kept = self._entries.pop(key, None)
        if kept is not None:
            self.bytes -= len(bytes(kept.raw))
            self._counts[key.server] -= 1
