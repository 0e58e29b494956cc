"""How long what a server sent may be given out again, and to whom.

A hint of a server never makes us keep anything for ever, and what was sent to one authorization
context is never given to another unless the server said that everybody may have it.

Source: MCP 2026-07-28 server/utilities/caching › Cache Key, TTL, Cache Scope, Notifications.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from observant_host.wire.messages import CacheScope

MAX_TTL_S: Final = 86_400.0
"""A server that says "for ever" is asked again once a day."""

READ: Final = "resources/read"
"""The one request of a call that may be cached; lists are kept as listings."""

SINGULAR: Final = ("inputResponses", "requestState", "_meta")
"""Parameters that make an answer one of a kind: nothing with them is kept or served."""

EVERYBODY: Final = ""
"""The context of what the server called public."""


class Found(StrEnum):
    """What a look into the cache gave."""

    HIT = "hit"
    STALE = "stale"
    MISS = "miss"


class Key(msgspec.Struct, frozen=True):
    """`server` names the endpoint, not our entry for it: two entries for one address share what is
    public. `context` is the authorization context, EVERYBODY for what is public. `dialect` is the
    revision that was spoken: another one may answer in another shape."""

    server: str
    context: str
    dialect: str
    method: str
    subject: str


def fresh_until(received_s: float, ttl_ms: int) -> float:
    """Until when (monotonic seconds) an answer is fresh; absent and negative hints mean 0."""
    return received_s + min(max(0, ttl_ms) / 1000, MAX_TTL_S)


def is_fresh(until_s: float, now_s: float) -> bool:
    """Fresh while strictly before its end: a hint of 0 is stale at once."""
    return now_s < until_s


def first_to_expire(untils_s: Iterable[float]) -> float:
    """A list is as fresh as its first stale page; without any page it never expires."""
    return min(untils_s, default=math.inf)


def subject_of(method: str, params: Mapping[str, Any]) -> str | None:
    """What identifies a cacheable request beside its method, None where it is not one."""
    if method != READ or any(key in params for key in SINGULAR):
        return None
    uri = params.get("uri")
    return uri if isinstance(uri, str) else None


def context_of(scope: CacheScope, authorization: str) -> str:
    """Whom an answer is kept for. A private one stays with its authorization context, of which
    stdio has one for each server."""
    return EVERYBODY if scope == "public" else f"private:{authorization}"


def touches(updated_uri: str, cached_uri: str) -> bool:
    """Whether a notification about one URI makes the other stale.

    It may name a part of what was read (MCP 2026-07-28 basic/patterns/subscriptions), and what
    contains it then changed too.
    """
    return updated_uri.startswith(cached_uri) or cached_uri.startswith(updated_uri)
