"""One reading of a resource, and the cache: what was kept for whom, and what may be.

Source: MCP 2026-07-28 server/utilities/caching.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from observant_host.config import HttpServer
from observant_host.decisions import freshness
from observant_host.decisions.freshness import READ, Found, Key
from observant_host.telemetry.vocabulary import CacheLookup
from observant_host.wire.messages import parse_hint

if TYPE_CHECKING:
    from msgspec import Raw

    from observant_host.config import ServerConfig
    from observant_host.peers.eras import Params
    from observant_host.peers.life import Life
    from observant_host.peers.resource_cache import ResourceCache
    from observant_host.telemetry.facade import Telemetry, TraceContext


class Place(msgspec.Struct, frozen=True):
    """Where one entry of the configuration keeps things: `server` is shared by all entries for one
    address, `owner` is its own."""

    server: str
    owner: str


def place_of(server: ServerConfig) -> Place:
    """A child process is one entry's alone. An address is the whole URL, whose query may choose a
    tenant; who asks there is told apart by the headers that are configured."""
    launch = server.launch
    if not isinstance(launch, HttpServer):
        return Place(f"entry {server.name}", server.name)
    told = msgspec.json.encode([launch.headers, launch.headers_command], order="sorted")
    return Place(f"url {_digest(launch.url.encode())}", f"{server.name} {_digest(told)}")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Reading:
    """Made for one call; `find` first, `keep` with what came if nothing was found."""

    def __init__(
        self,
        cache: ResourceCache,
        place: Place,
        *,
        peer: str,
        telemetry: Telemetry,
        parent: TraceContext | None,
    ) -> None:
        self._cache = cache
        self._place = place
        self._peer = peer
        self._telemetry = telemetry
        self._parent = parent
        self._uri: str | None = None
        self._context = ""
        self._asked_at = 0

    def find(self, life: Life, params: Params) -> Raw | None:
        """What was kept of this very request and is fresh, None where it is to be sent."""
        if not _is_modern(life) or not isinstance(params, Mapping):
            return None
        self._uri = freshness.subject_of(READ, params)
        if self._uri is None:
            return None
        self._context = self._authorization(life)
        self._asked_at = self._cache.moment(self._place.server)
        keys = (self._key(life, scope) for scope in ("private", "public"))
        found, kept = self._cache.find(*keys)
        self._told(found)
        return kept

    def keep(self, life: Life, raw: Raw) -> None:
        """Keep a complete result that no input was given for, as long as its server says."""
        if self._uri is None or not _is_modern(life) or self._context != self._authorization(life):
            return
        ttl_ms, scope = parse_hint(raw)
        if ttl_ms > 0:
            until_s = freshness.fresh_until(life.clock.monotonic(), ttl_ms)
            self._cache.keep(self._key(life, scope), raw, until_s=until_s, asked_at=self._asked_at)

    def _key(self, life: Life, scope: Any) -> Key:
        version = life.era.version if life.era is not None else ""
        context = freshness.context_of(scope, self._context)
        return Key(self._place.server, context, version, READ, self._uri or "")

    def _authorization(self, life: Life) -> str:
        """Another token is another context, also where a command gave the new one."""
        token = getattr(life.transport, "authorization", "")
        return f"{self._place.owner} {token}"

    def _told(self, found: Found) -> None:
        self._telemetry.count(CacheLookup(peer=self._peer, found=found), parent=self._parent)


def _is_modern(life: Life) -> bool:
    return life.era is not None and life.era.name == "modern"
