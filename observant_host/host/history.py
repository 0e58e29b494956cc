"""The decisions about one server: from the record where there is one, else of this run."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from observant_host.host.core import Core


async def explain(core: Core, name: str, *, since_ns: int | None) -> list[dict[str, Any]]:
    """Oldest first: objects of `explain --json`."""
    plan = core.plan
    if plan.record and plan.state_dir is not None:
        from observant_host.incidents.record import read_decisions

        await core.telemetry.flush()
        return list(
            await asyncio.to_thread(
                read_decisions, [plan.state_dir], server=name, since_ns=since_ns
            )
        )
    return [
        dict(decision)
        for server, decision in core.decisions
        if server == name and (since_ns is None or _ns(decision["time"]) >= since_ns)
    ]


def _ns(time: str) -> int:
    return int(datetime.fromisoformat(time).astimezone(UTC).timestamp() * 1e9)
