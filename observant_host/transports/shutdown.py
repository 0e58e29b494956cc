"""Ending a child and its whole group, in bounded steps.

Launchers (`npx`, `sh -c`) die of a SIGTERM without passing it on, so signals go to the group; and
the group is only gone when nobody holds its stdout any more.

Source: MCP 2026-07-28 basic/transports/stdio › Shutdown.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from observant_host.timing.deadline import DeadlinePassed, deadline
from observant_host.timing.tasks import wait_any

if TYPE_CHECKING:
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal
    from observant_host.transports.child import Child

QUIET_SHARE: Final = 0.4
"""Of `shutdown_timeout_s`, for ending by itself without stdin; real servers take 0 to 2 s."""
TERM_SHARE: Final = 0.4
"""Of the same, after SIGTERM; the rest is for SIGKILL, which needs no time but the kernel's."""


KILL_SHARE: Final = 1 - QUIET_SHARE - TERM_SHARE


async def end_group(
    child: Child,
    *,
    stdout_ended: Signal,
    budget_s: float,
    peer: str,
    telemetry: Telemetry,
    clock: Clock,
    hurry: Signal,
) -> None:
    """Close stdin, wait, SIGTERM, wait, SIGKILL; within `budget_s` seconds as a whole. Once `hurry`
    is set, SIGKILL is next.

    Where the child has ended by itself, only the rest of its group is ended. `child.exited` is not
    set afterwards only if the kernel cannot end it.
    """

    async def gone(share: float, *signals: Signal, unless: tuple[Signal, ...] = (hurry,)) -> bool:
        seconds = share * budget_s
        try:
            async with deadline(
                seconds, scope="shutdown", peer=peer, telemetry=telemetry, clock=clock
            ):
                for one in signals:
                    await wait_any(clock, None, one, *unless)
        except DeadlinePassed:
            return False
        return all(one.is_set() for one in signals)

    alone = child.exited.is_set()
    child.close("stdin")
    quiet = not alone and await gone(QUIET_SHARE, child.exited, stdout_ended)
    if not quiet and not hurry.is_set():
        child.signal_group(signal.SIGTERM)
        await gone(TERM_SHARE, child.exited, stdout_ended)
    child.signal_group(signal.SIGKILL)
    await gone(KILL_SHARE, child.exited, unless=())
