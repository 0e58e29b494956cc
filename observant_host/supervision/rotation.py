"""A server that wants a login is not asked again by itself, but credentials change by themselves:
a file is rewritten, a command prints a new token. Looking at those costs the server nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.errors import HostError
from observant_host.timing.tasks import wait_any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal
    from observant_host.transports.base import Credentials

LOOK_S: Final = 15.0
"""Between two looks: nobody who has just renewed a token wants to wait much longer."""


async def until_rotated(credentials: Credentials, wish: Signal, *, clock: Clock) -> bool:
    """True once there are other credentials than the present ones, False for a person's act."""
    refused = await _present(credentials)
    while True:
        if await wait_any(clock, LOOK_S, wish) is not None:
            return False
        present = await _present(credentials)
        if present is not None and present != refused:
            return True


async def _present(credentials: Credentials) -> Mapping[str, str] | None:
    """None while they cannot be had."""
    try:
        return await credentials.headers()
    except HostError:
        return None
