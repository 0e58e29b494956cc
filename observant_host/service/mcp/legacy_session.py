"""One legacy client, from `initialize` to its end: what was agreed, and what is open.

It knows no transport. Requests of the client run in tasks of the session, so that a connection that
breaks does not cancel them: in these revisions only `notifications/cancelled` does.

Source: MCP 2025-11-25 basic/lifecycle, basic/utilities/cancellation, server/utilities/logging.
"""

from __future__ import annotations

import itertools
import secrets
from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions.legacy_northbound import loud_enough
from observant_host.errors import HostError
from observant_host.peers.relay import Refused
from observant_host.service.mcp.feed import KINDS
from observant_host.service.mcp.outlet import encode, notification
from observant_host.timing.tasks import Signal, spawn, wait_any
from observant_host.wire.jsonrpc import Error, Result
from observant_host.wire.revisions import INTERNAL_ERROR

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from msgspec import Raw

    from observant_host.peers.told import LogMessage
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.desk import Desk
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock
    from observant_host.wire.jsonrpc import Id

    Say = Callable[[bytes], object]

MAX_RUNNING: Final = 256
"""Requests of one session at a time: an agent has a handful."""
MAX_ASKED: Final = 64
"""Questions to one client that wait for a person or a model."""
MAX_URIS: Final = 256
"""Resources that one session follows."""
MAX_FIRST_ID: Final = 2**30
"""Where ids of questions begin: a late answer to a session before must fit none of this one."""
UNANSWERED: Final = Refused(INTERNAL_ERROR, "the client went away without an answer")
NO_ROOM: Final = Refused(INTERNAL_ERROR, "the client is asked too many things at once")


class Agreed:
    """What `initialize` settled."""

    def __init__(
        self, revision: str, capabilities: Mapping[str, Any], client: Mapping[str, Any]
    ) -> None:
        self.revision = revision
        self.capabilities = capabilities
        self.client = client


class Session:
    """`say_log` is where log messages go; None: nowhere. `over` is set at its end."""

    def __init__(
        self, caller: Caller, agreed: Agreed, *, host: Served, desk: Desk, clock: Clock
    ) -> None:
        self.caller = caller
        self.revision = agreed.revision
        self.capabilities = agreed.capabilities
        self.client = agreed.client
        self.log_level: str | None = None
        self.say_log: Say | None = None
        self.over = Signal()
        self._host = host
        self._clock = clock
        self._clients = desk.clients
        self._clients.began()
        self.follower = desk.feed.join(caller.slice, KINDS)
        self._unfollow_logs = host.follow_logs(self._logged)
        self._uris: dict[str, None] = {}
        self._running: dict[tuple[type, Id], asyncio.Task[None]] = {}
        self._asked: dict[int, tuple[Signal, list[Raw | Refused]]] = {}
        self._ids = itertools.count(secrets.randbelow(MAX_FIRST_ID))
        self._ending: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a request of it runs."""
        return bool(self._running)

    @property
    def full(self) -> bool:
        return len(self._running) >= MAX_RUNNING

    # Requests of the client

    def run(self, request_id: Id, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do `work` for a request, until it is cancelled."""
        key = (type(request_id), request_id)
        task = spawn("request of a session", work)
        self._running[key] = task

        def done(ended: asyncio.Task[None]) -> None:
            if self._running.get(key) is ended:
                del self._running[key]

        task.add_done_callback(done)
        return task

    def cancel(self, request_id: Id) -> None:
        """The client no longer wants that request; an unknown one is none of ours any more."""
        task = self._running.get((type(request_id), request_id))
        if task is not None:
            task.cancel()

    # Questions to the client

    async def ask(self, say: Say, method: str, params: Raw) -> Raw | Refused:
        """The client's own answer. `say` writes to it, beside the request that this is for."""
        if len(self._asked) >= MAX_ASKED:
            return NO_ROOM
        number, answered = next(self._ids), Signal()
        answer: list[Raw | Refused] = []
        self._asked[number] = (answered, answer)
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        body = encode({**message, "params": params} if bytes(params) != b"null" else message)
        try:
            say(body.replace(b"\n", b" ").replace(b"\r", b" "))
            await wait_any(self._clock, None, answered, self.over)
        except BaseException:
            say(notification("notifications/cancelled", {"requestId": number}))
            raise
        finally:
            del self._asked[number]
        return answer[0] if answer else UNANSWERED

    def answered(self, message: Result | Error) -> None:
        """The client's response; one that nobody waits for is dropped."""
        asked = self._asked.get(message.id) if type(message.id) is int else None
        if asked is None:
            return
        signal, answer = asked
        answer.append(
            message.result
            if isinstance(message, Result)
            else Refused(message.code, message.message)
        )
        signal.set()

    # News for the client

    def news(self) -> list[bytes]:
        """Notifications of what changed since the last look."""
        kinds, updated = self.follower.take()
        told = [notification(f"notifications/{kind}/list_changed", {}) for kind in kinds]
        return told + [notification("notifications/resources/updated", {"uri": u}) for u in updated]

    def missed(self) -> None:
        """The client may have missed news: all lists are told again."""
        for kind in KINDS:
            self.follower.listed(kind)

    def _logged(self, message: LogMessage) -> None:
        if self.say_log is None or not self.caller.slice.has_server(message.server):
            return
        if not loud_enough(message.level, self.log_level) or self._is_others(message.server):
            return
        params: dict[str, Any] = {"level": message.level or "info", "data": message.data}
        name = f"{message.server}/{message.logger}" if message.logger else message.server
        self.say_log(notification("notifications/message", {**params, "logger": name}))

    def _is_others(self, server: str) -> bool:
        """A server over stdio does not say whose call a message is about: while somebody else's is
        open there, it may be that one."""
        calls = self._host.calls_in_flight()
        return any(one.server == server and one.principal != self.caller.principal for one in calls)

    async def subscribe(self, uri: str) -> bool:
        """Follow a resource; False where there are too many. Raises HostError where nobody has it
        or it cannot be followed."""
        if uri in self._uris:
            return True
        if len(self._uris) >= MAX_URIS:
            return False
        await self._host.subscribe_resource(uri, self.follower.updated)
        self._uris[uri] = None
        return True

    async def unsubscribe(self, uri: str) -> None:
        """Idempotent."""
        if uri in self._uris:
            del self._uris[uri]
            await _quietly(self._host.unsubscribe_resource(uri, self.follower.updated))

    # End

    def end(self) -> None:
        """Cancel all that is open. Idempotent."""
        if self.over.is_set():
            return
        self.over.set()
        self._clients.ended()
        self.say_log = None
        self.follower.leave()
        self._unfollow_logs()
        for task in tuple(self._running.values()):
            task.cancel()
        if self._uris:
            self._ending = spawn("end of a session", self._unfollow(tuple(self._uris)))

    async def _unfollow(self, uris: tuple[str, ...]) -> None:
        for uri in uris:
            await _quietly(self._host.unsubscribe_resource(uri, self.follower.updated))


async def _quietly(unsubscribing: Awaitable[None]) -> None:
    try:
        await unsubscribing
    except HostError:
        return  # its server is gone, and the wish with it
