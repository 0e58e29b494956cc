"""What a stream of changes covers, and what to do when it ends: open another, or stop.

The protocol replays nothing, so each new stream is followed by reading again what it covers. Only a
server that does not know the method at all is left alone; whatever else went wrong may pass.

Source: MCP 2026-07-28 server/utilities/subscriptions › Opening a Stream, Acknowledgment,
Cancellation.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions import backoff

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KINDS: Final = ("tools", "prompts", "resources")
INITIAL_S: Final = 0.5
MAX_S: Final = 60.0
"""A server that never keeps a stream costs one attempt a minute, and one reading of its lists."""


class Filter(msgspec.Struct, frozen=True):
    """`lists` are of KINDS, in that order; `uris` are resources, sorted."""

    lists: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lists or self.uris)

    def to_params(self) -> dict[str, Any]:
        """As the value of `notifications`."""
        found: dict[str, Any] = {f"{kind}ListChanged": True for kind in self.lists}
        if self.uris:
            found["resourceSubscriptions"] = list(self.uris)
        return found

    def words(self) -> tuple[str, ...]:
        """For people and spans: kinds of lists, and how many resources."""
        return self.lists + ((f"{len(self.uris)} resources",) if self.uris else ())

    def without(self, other: Filter) -> Filter:
        """What of this the other does not cover."""
        return Filter(
            tuple(kind for kind in self.lists if kind not in other.lists),
            tuple(uri for uri in self.uris if uri not in other.uris),
        )


def wanted(capabilities: Mapping[str, Any], uris: Iterable[str]) -> Filter:
    """What to ask for: each list whose changes the server announces, and the resources that
    somebody wishes to follow where the server lets them be followed."""
    lists = tuple(kind for kind in KINDS if announces(capabilities, kind, "listChanged"))
    followed = announces(capabilities, "resources", "subscribe")
    return Filter(lists, tuple(sorted(set(uris))) if followed else ())


def announces(capabilities: Mapping[str, Any], kind: str, what: str) -> bool:
    """Whether `capabilities[kind][what]` is true; what is no object announces nothing."""
    told = capabilities.get(kind)
    return isinstance(told, dict) and told.get(what) is True


def accepted(asked: Filter, told: object) -> Filter:
    """What of `asked` an acknowledgment's `notifications` grants: never more than was asked for."""
    if not isinstance(told, dict):
        return Filter()
    uris = told.get("resourceSubscriptions")
    granted = {uri for uri in uris if isinstance(uri, str)} if isinstance(uris, list) else set()
    return Filter(
        tuple(kind for kind in asked.lists if told.get(f"{kind}ListChanged") is True),
        tuple(uri for uri in asked.uris if uri in granted),
    )


class Loss(StrEnum):
    """How a stream ended, or was never opened."""

    GRACEFUL = "graceful"  # its result came
    CANCELLED = "cancelled"  # the server sent notifications/cancelled that names it
    TRANSPORT = "transport"  # its connection or process ended, or it could not be sent
    WATCHDOG = "watchdog_silent"  # it had not ended, but nothing came on it any more
    NO_ACK = "no_ack"  # no acknowledgment in time
    REFUSED = "refused"  # an error instead of an acknowledgment
    UNKNOWN_METHOD = "unknown_method"  # -32601: this server has no such thing


class Do(StrEnum):
    REOPEN = "reopen"
    STOP = "stop"


class Step(msgspec.Struct, frozen=True):
    """Open another stream after `delay_s`, its failures in a row being `attempts`; or stop."""

    do: Do
    attempts: int = 0
    delay_s: float = 0.0


def after(
    loss: Loss, *, attempts: int, uptime_s: float, healthy_after_s: float, random_0_1: float
) -> Step:
    """`attempts` were made since a stream last stood for `healthy_after_s`; `uptime_s` is how long
    this one stood since its acknowledgment, 0 where none came.

    A graceful end is waited after as well: a server that ends each stream at once is no better
    than one that drops it.
    """
    if loss is Loss.UNKNOWN_METHOD:
        return Step(Do.STOP)
    tries = 1 if uptime_s >= healthy_after_s else attempts + 1
    pause = backoff.delay(tries, initial_s=INITIAL_S, maximum_s=MAX_S, random_0_1=random_0_1)
    return Step(Do.REOPEN, tries, pause)
