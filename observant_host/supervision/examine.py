"""A person's look at one server: the same table, one round, a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from observant_host.supervision.peer_state import ServerView

if TYPE_CHECKING:
    from observant_host.config import ServerConfig


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """What to write into the configuration so that this server is served as it is.

    `keys` are those of a `[servers.NAME]` table, in order: allow_legacy, legacy_reason,
    legacy_expires (ISO date), legacy_fingerprint.
    """

    server: str
    revision: str
    keys: dict[str, Any]


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """`view` is the status object of the finished round; `legacy_revision` is set where the server
    proved legacy. `elapsed_ms` is the whole, `spawn_ms` the start, `first_call_ms` unused where
    nothing was listed. `sentence` is for a person."""

    server: str
    view: ServerView
    legacy_revision: str | None
    fingerprint: str
    sentence: str
    elapsed_ms: float
    suggestion: Suggestion | None = None


async def examine(server: ServerConfig, **deps: Any) -> Examination:
    raise NotImplementedError
