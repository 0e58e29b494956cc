"""`subscriptions/listen`: first the acknowledgment, then only what was asked for, then an end.

Source: MCP 2026-07-28 basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.northbound import (
    Refusal,
    at_the_door,
)
from observant_host.errors import HostError
from observant_host.service.mcp.aiming import Aiming
from observant_host.service.mcp.announced import OUR_META
from observant_host.service.mcp.outlet import encode, error_of, notification, result_of
from observant_host.timing.tasks import Signal, wait_any
from observant_host.wire.envelope import SUBSCRIPTION_ID
from observant_host.wire.revisions import INTERNAL_ERROR, INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.decisions.northbound import Question
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.feed import Feed, Follower
    from observant_host.service.mcp.lists import Lists
    from observant_host.service.mcp.outlet import Outlet, Response
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock

MAX_STREAMS: Final = 1024
MAX_OF_ONE: Final = 256
"""Streams of one caller: each holds a connection. Without tokens all callers are one."""
MAX_URIS: Final = 256
"""Resources of one stream; those beyond are left out of its acknowledgment."""

ASKED: Final[Mapping[str, str]] = {
    "toolsListChanged": "tools",
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
}


class Listening:
    """All open subscriptions of all callers."""

    def __init__(self, host: Served, feed: Feed, lists: Lists, *, clock: Clock) -> None:
        self._host = host
        self._feed = feed
        self._aiming = Aiming(host, lists)
        self._clock = clock
        self._open: Counter[str] = Counter()
        self._closing = Signal()

    @property
    def count(self) -> int:
        return self._open.total()

    def close(self) -> None:
        """End all of them with their result. Idempotent."""
        self._closing.set()

    async def open(
        self, question: Question, caller: Caller, out: Outlet
    ) -> Subscription | Response:
        """Acknowledged, or the response that refuses it. Whoever gets a Subscription awaits its
        `until_over`, which gives up its place."""
        wanted = _read(question)
        if isinstance(wanted, Refusal):
            return error_of(question.id, wanted)
        if self._closing.is_set() or self._full(caller):
            return error_of(question.id, _NO_ROOM)
        follower = self._feed.join(caller.slice, [ASKED[flag] for flag in wanted.flags])
        self._open[caller.principal] += 1
        one = Subscription(self, question, caller.principal, follower, out)
        try:
            accepted = [uri for uri in wanted.uris if await self._followed(uri, caller, one)]
        except BaseException:
            await one.left()
            raise
        filter_: dict[str, Any] = dict.fromkeys(wanted.flags, True)
        if accepted:
            filter_["resourceSubscriptions"] = accepted
        one.tell("notifications/subscriptions/acknowledged", {"notifications": filter_})
        return one

    async def _followed(self, uri: str, caller: Caller, one: Subscription) -> bool:
        """Whether its server lets this resource be followed."""
        try:
            owner = self._aiming.resource(uri, caller.slice)
            await self._host.subscribe_resource(uri, one.follower.updated, server=owner)
        except HostError:
            return False
        one.followed.append((uri, owner))
        return True

    async def unfollow(self, uri: str, server: str | None, follower: Follower) -> None:
        try:
            await self._host.unsubscribe_resource(uri, follower.updated, server=server)
        except HostError:
            return  # its server is gone, and the wish with it

    def gone(self, principal: str) -> None:
        """One subscription of that caller is over."""
        self._open[principal] -= 1
        if self._open[principal] <= 0:
            del self._open[principal]

    async def woken(self, changed: Signal) -> bool:
        """False once everything is to end."""
        await wait_any(self._clock, None, self._closing, changed)
        return not self._closing.is_set()

    def _full(self, caller: Caller) -> bool:
        return self.count >= MAX_STREAMS or self._open[caller.principal] >= MAX_OF_ONE


class Subscription:
    """One acknowledged stream."""

    def __init__(
        self,
        among: Listening,
        question: Question,
        principal: str,
        follower: Follower,
        out: Outlet,
    ) -> None:
        self._among = among
        self._id = question.id
        self._principal = principal
        self._out = out
        self._over = False
        self.follower = follower
        self.followed: list[tuple[str, str | None]] = []

    async def until_over(self) -> Response:
        """Tell changes until the host ends; the response is the graceful end. Cancelled where the
        client ends it."""
        try:
            while await self._among.woken(self.follower.changed) and not self._out.closed:
                kinds, updated = self.follower.take()
                for kind in kinds:
                    self.tell(f"notifications/{kind}/list_changed", {})
                for uri in updated:
                    self.tell("notifications/resources/updated", {"uri": uri})
        finally:
            await self.left()
        meta = {**OUR_META, SUBSCRIPTION_ID: self._id}
        return result_of(self._id, encode({"resultType": "complete", "_meta": meta}))

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """One notification of this subscription."""
        self._out.notify(notification(method, {**params, "_meta": {SUBSCRIPTION_ID: self._id}}))

    async def left(self) -> None:
        """Give everything back. Idempotent; nothing in it waits."""
        if self._over:
            return
        self._over = True
        self.follower.leave()
        self._among.gone(self._principal)
        for uri, server in self.followed:
            await self._among.unfollow(uri, server, self.follower)


class _Wanted(msgspec.Struct, frozen=True):
    flags: tuple[str, ...]
    uris: tuple[str, ...]


def _read(question: Question) -> _Wanted | Refusal:
    asked = question.value("notifications")
    if not isinstance(asked, dict):
        return at_the_door(INVALID_PARAMS, "`notifications` must be an object")
    uris = asked.get("resourceSubscriptions") or []
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        return at_the_door(INVALID_PARAMS, "`resourceSubscriptions` must be a list of URIs")
    flags = tuple(flag for flag in ASKED if asked.get(flag) is True)
    return _Wanted(flags, tuple(dict.fromkeys(uris))[:MAX_URIS])


_NO_ROOM: Final = Refusal(
    INTERNAL_ERROR,
    f"there are too many open subscriptions (at most {MAX_OF_ONE} of one caller), or the host is "
    "ending; end one, or go by ttlMs",
    status=503,
)
