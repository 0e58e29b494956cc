"""What was: the decisions about one server, and the incidents of a time, from the record."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from observant_host.errors import HostError, InvalidCall, Unavailable

if TYPE_CHECKING:
    from observant_host.host.core import Core
    from observant_host.incidents.purge import Purged


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


async def incidents(
    core: Core, *, server: str | None, since_ns: int | None, until_ns: int | None
) -> dict[str, Any]:
    """The document of `incidents --json`. Raises Unavailable where nothing is recorded."""
    plan = core.plan
    if not plan.record or plan.state_dir is None:
        raise Unavailable("this host keeps no record: set `record = true`", fault="host")
    from observant_host.incidents import answer

    until = until_ns if until_ns is not None else plan.clock.wall_ns()
    question = answer.Question(
        since_ns=since_ns if since_ns is not None else until - answer.DAY_NS,
        until_ns=until,
        server=server,
    )
    sources = answer.Sources(state_dirs=(plan.state_dir,))
    index = answer.index_path(sources, plan.state_dir)
    await core.telemetry.flush()
    placed = msgspec.structs.replace(sources, index=index)
    return await asyncio.to_thread(answer.incidents, placed, question)


async def purge_record(
    core: Core, *, before_ns: int | None, server: str | None, dry_run: bool
) -> Purged:
    """Finish what is being written, then delete. Raises Unavailable, InvalidCall, HostError."""
    plan = core.plan
    if plan.state_dir is None:
        raise Unavailable("this host has no state folder, so it keeps no record", fault="host")
    from observant_host.incidents import purge

    try:
        wanted = purge.Wanted(before_ns=before_ns, server=server)
    except ValueError as error:
        raise InvalidCall(str(error)) from None
    await core.telemetry.rotate_record()
    try:
        return await asyncio.to_thread(purge.purge, plan.state_dir, wanted, dry_run=dry_run)
    except OSError as error:
        raise HostError(f"not everything could be deleted: {error}") from None


def _ns(time: str) -> int:
    return int(datetime.fromisoformat(time).astimezone(UTC).timestamp() * 1e9)
