"""What one peer looks like from outside: the status that a person reads, and its bookkeeping."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from observant_host.decisions.terms import Cause, Era, PeerState

Layer = Literal["ok", "waiting", "failing", "down", "off", "unknown"]


class Layers(msgspec.Struct, frozen=True, kw_only=True):
    """How far up each layer of the peer stands; `last_call` is the last call's outcome or "none".

    "waiting": begun, no answer yet. "off": not wanted for this server.
    """

    process: Layer = "down"
    transport: Layer = "down"
    era: Layer = "unknown"
    listing: Layer = "unknown"
    listen: Layer = "off"
    last_call: str = "none"


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """One server at one moment; encoded as JSON it is the object of `status --json`.

    `since` is ISO 8601 UTC, the moment `state` was entered. `detail` is a sentence for a person
    with the next step. `generation` counts transport lives. `evidence` is that of the last round.
    """

    name: str
    transport: Literal["stdio", "http", "sse", "memory"]
    state: PeerState
    cause: Cause | None
    era: Era
    version: str | None
    reason: str
    detail: str
    since: str
    generation: int
    allow_legacy: bool
    fingerprint: str
    server_info: Mapping[str, Any] | None
    capabilities: Mapping[str, Any] | None
    tools: int
    layers: Layers
    evidence: tuple[Mapping[str, object], ...]
    pid: int | None
    trace_id: str | None


def iso(ns: int) -> str:
    """Epoch nanoseconds as ISO 8601 UTC with milliseconds."""
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns // 1_000_000 % 1000:03d}Z"
