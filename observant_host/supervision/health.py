"""Whether a server behind a URL is still there, asked once after a request was lost.

Source: MCP 2026-07-28 server/discover; MCP 2025-11-25 basic/utilities/ping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions.terms import Era
from observant_host.errors import CallError, HttpFailure, RpcError
from observant_host.wire.messages import parse_discover

if TYPE_CHECKING:
    from observant_host.peers.life import Life

TOO_MANY_REQUESTS: Final = 429


async def missing(life: Life) -> str | None:
    """None where it answers as the server it was, else what came, as a part of a sentence.

    A legacy server need not know ping: any answer to it is a sign of life, and so is the wish to be
    left alone (429). A modern server that gives no DiscoverResult is not the one that this life
    began with.
    """
    modern = life.era is not None and life.era.name is Era.MODERN
    expires = life.clock.monotonic() + life.server.timing.probe_timeout_s
    try:
        answer = await life.request(
            "server/discover" if modern else "ping",
            expires=expires,
            scope="probe",
            purpose="health",
        )
    except RpcError as error:
        return f"server/discover was answered with error {error.code}" if modern else None
    except CallError as failed:
        return None if _asks_for_a_pause(failed) else str(failed)
    if not modern:
        return None
    found = parse_discover(answer)
    return f"server/discover was answered, but {found}" if isinstance(found, str) else None


def _asks_for_a_pause(failed: CallError) -> bool:
    cause = failed.__cause__
    return isinstance(cause, HttpFailure) and cause.status == TOO_MANY_REQUESTS
