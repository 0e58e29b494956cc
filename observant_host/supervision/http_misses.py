"""What follows a round without an era, for a server behind a URL.

There is no process to be patient with. Where the server itself answered, the same life is asked
again; where it did not, the next round begins a new one. Where a person decides (a login, a wrong
address), nothing is asked again by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions import restart
from observant_host.decisions.terms import Cause, Trigger
from observant_host.supervision.between import Next

if TYPE_CHECKING:
    from observant_host.peers.life import Life
    from observant_host.peers.negotiation import Round

MAX_PAUSE_S: Final = 24 * 3600.0
"""A server may ask to be left alone, but not for longer than somebody looks after it."""


def over_http(life: Life) -> bool:
    return life.transport.kind in ("http", "sse")


def stays(found: Round) -> bool:
    """Whether the next round may be on the same life: the server answered, and was not yet sent
    `initialize`."""
    return found.cause in (Cause.POLICY, Cause.PROTOCOL) and not found.end_life


def after_http(found: Round, cause: Cause, *, delay_s: float) -> Next:
    """A new life after `delay_s`, added to the pause that the server asked for, if it did; or not
    before a person acts."""
    if not restart.heals(cause):
        return Next(Trigger.REPROBE, delay_s=None, login=cause is Cause.AUTH)
    pause_s = min(found.retry_after_s or 0.0, MAX_PAUSE_S)
    return Next(Trigger.REPROBE, delay_s=pause_s + delay_s, may_wake=pause_s == 0.0)
