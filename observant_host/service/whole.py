"""What concerns the whole host, for callers to whom only a part of it exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from observant_host.decisions.slices import sliced
from observant_host.errors import InvalidCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from observant_host.routing.open_calls import CallInFlight, EndedCall
    from observant_host.service.callers import Caller
    from observant_host.service.served import Served

    AnyCall = TypeVar("AnyCall", CallInFlight, EndedCall)


def needs_whole(caller: Caller, what: str) -> None:
    """Raises InvalidCall where some servers or tools do not exist for this caller."""
    if not caller.slice.is_whole:
        raise InvalidCall(
            f"{what} concerns all servers, and the token has a profile: use one without"
        )


def calls_of(host: Served, caller: Caller, calls: Iterable[AnyCall]) -> list[AnyCall]:
    """Those calls whose server and tool exist for this caller. The host must run."""
    part = caller.slice
    if part.is_whole:
        return list(calls)
    tools = sliced(host.catalogue, part).lookup
    return [
        one
        for one in calls
        if part.has_server(one.server) and (one.method != "tools/call" or one.name in tools)
    ]
