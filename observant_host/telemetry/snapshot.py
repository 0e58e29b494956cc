"""What one scrape reads of one peer: `Telemetry.watch_peers`."""

from __future__ import annotations

import msgspec


class PeerSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One peer at one moment, for the gauges. None means "not known": no series then.

    state, cause, era: values of PeerState, Cause, Era. `era_expected` is whether the last era that
    was chosen is the one that was expected. `expected` is the wish that it be up
    (enabled and not held). Times are seconds since the epoch, sizes bytes; processes, memory,
    CPU and descriptors are those of the peer's whole process group.
    """

    peer: str
    state: str
    cause: str | None = None
    era: str = "unknown"
    era_expected: bool | None = None
    expected: bool = True
    required: bool = False
    last_ready_s: float | None = None
    last_downgrade_s: float | None = None
    last_refused_s: float | None = None
    allowance_expires_s: float | None = None
    tools: int | None = None
    collisions: int | None = None
    refresh_failing: bool | None = None
    subscription_up: bool | None = None
    inflight: int = 0
    queued: int = 0
    processes: int | None = None
    resident_bytes: int | None = None
    cpu_seconds: float | None = None
    open_fds: int | None = None
