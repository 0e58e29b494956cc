"""One round of finding out a server's era: act, wait for evidence, step, report.

Everything decided here is decided by the table in decisions/era; this driver owns the clock.

Source: MCP 2026-07-28 basic/transports/stdio › Backward Compatibility, basic/versioning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from observant_host.decisions.era import Permission
    from observant_host.decisions.terms import Era, Trigger
    from observant_host.peers.life import Life
    from observant_host.telemetry.facade import TraceContext


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What one round found out.

    `life` is the one that is in use now: after a respawn not the one that was given. `era` is None
    where none was chosen; then `cause` and `detail` say why, and `end_life` whether this life must
    be ended by the caller before another round. `modern_evidence` is True where the server proved
    to be modern in this round, whatever came of it (the caller remembers that).
    """

    life: Any
    era: Any
    selected: Any
    reason: Any
    cause: Any
    direction: Any
    expected: bool
    detail: str
    evidence: tuple[Any, ...]
    end_life: bool
    modern_evidence: bool
    context: Any


async def negotiate(
    life: Life,
    *,
    permission: Permission,
    proven: bool,
    trigger: Trigger,
    previous_era: Era,
    respawn: Callable[[], Awaitable[Life]],
    remembered_modern: bool = False,
    parent: TraceContext | None = None,
) -> Round:
    """Negotiate once. Raises nothing but cancellation.

    `proven`: a timeout is an outage (memory, or expect_era = "modern"). `remembered_modern`: the
    memory says modern; where legacy is chosen all the same, the decision is not expected.
    `respawn` gives an opened life in a fresh process; it may raise TransportError.
    """
    raise NotImplementedError
