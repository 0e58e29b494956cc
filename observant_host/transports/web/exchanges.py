"""The exchanges under way in one life: each for itself, together bounded.

None holds up another: a POST that is slow, refused or reset concerns its own message only. What can
be written at once, and is answered as usual, needs no task; everything else has one of its own.
"""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from observant_host.errors import QueueFull
from observant_host.timing.tasks import Signal, spawn_owned, wait_any
from observant_host.transports.web.connections import Expired, Passage

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from observant_host.timing.clock import Clock, Timer
    from observant_host.transports.base import Outbound
    from observant_host.transports.web.client import WebClient
    from observant_host.transports.web.inlet import Inlet
    from observant_host.transports.web.lines import Known

MAX_EXCHANGES: Final = 1024
"""Calls in flight are bounded far below this; more means that notifications pile up."""

HARMLESS: Final = frozenset(
    {
        "ping",
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    }
)
"""Requests of the host's own that change nothing. So do messages without an id: a second one is
ignored. What a caller asked for is repeated, where that is safe, by whoever routes it: under a new
id, within its deadline, and told."""

QUEUE_MESSAGES: Final = 2
"""Of the largest size, may wait for a connection: the memory that one stuck server can hold."""


class Exchange(Passage):
    """One message on its way, and its response; a transports.base.Sent."""

    __slots__ = ("of", "out", "session_id", "task", "timer")

    def __init__(self, out: Outbound, of: Exchanges, *, expires: float) -> None:
        super().__init__(
            expires=expires,
            fresh=out.method == "initialize",  # a life has one, which no stale connection may cost
            harmless=out.request_id is None or out.method in HARMLESS,
        )
        self.out = out
        self.of = of
        self.session_id: str | None = None
        self.task: asyncio.Task[None] | None = None
        self.timer: Timer | None = None

    def withdraw(self) -> bool:
        if self.started:
            return False
        self.stop()
        return True

    def stop(self) -> None:
        """Close its stream, or do not even begin; nothing is told."""
        if self.task is not None:
            self.task.cancel()
        elif self.line is not None:
            self.line.hang_up()
            self.of.done(self)

    def answered(self, known: Known, body: bytes) -> None:
        """All at once, on the connection that it was written to at once."""
        self.line = None
        self.of.answered(self, known, body)

    def unusual(self) -> None:
        self.of.go_on(self)


class Exchanges:
    """`run(exchange)` does one, and tells what became of it.

    `at_once(exchange)` is True where it could be written without waiting for anything: then it has
    no task. `take` is told its answer, or it goes on with `run` where that is an unusual one.
    """

    def __init__(
        self,
        name: str,
        client: WebClient,
        *,
        run: Callable[[Exchange], Coroutine[Any, Any, None]],
        inlet: Inlet,
        max_bytes: int,
        clock: Clock,
        at_once: Callable[[Exchange], bool] = lambda _: False,
        take: Callable[[Exchange, Known, bytes], None] = lambda *_: None,
    ) -> None:
        self._at_once = at_once
        self._take = take
        self._name = name
        self._client = client
        self._run = run
        self._inlet = inlet
        self._max_waiting = QUEUE_MESSAGES * max_bytes
        self._clock = clock
        self._open: dict[Exchange, None] = {}
        self._requests: dict[int, Exchange] = {}
        self._bytes = 0
        self._over = Signal()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, out: Outbound, *, expires: float, until_expiry: bool = False) -> Exchange:
        """Raises QueueFull, which means that nothing was sent.

        `until_expiry`: nobody waits for this response, so at `expires` it is closed, for else a
        server that never gives it would keep the connection for ever.
        """
        size = len(out.frame)
        if len(self._open) >= MAX_EXCHANGES or self._bytes + size > self._max_waiting:
            self._make_room(size)
        exchange = Exchange(out, self, expires=expires)
        self._open[exchange] = None
        self._bytes += size
        if out.request_id is not None:
            self._requests[out.request_id] = exchange
        if not self._at_once(exchange):
            self.go_on(exchange)
        if until_expiry and math.isfinite(expires):
            exchange.timer = self._clock.call_at(expires, exchange.stop)
        return exchange

    def go_on(self, exchange: Exchange) -> None:
        """By a task of its own."""
        exchange.task = spawn_owned(
            f"POST {exchange.out.method} to {self._name}",
            self._run(exchange),
            ended=partial(self._ended, exchange),
        )

    def answered(self, exchange: Exchange, known: Known, body: bytes) -> None:
        """Without a task."""
        try:
            self._take(exchange, known, body)
        except Exception as error:  # noqa: BLE001 - reported as such
            self._broke(exchange, error)
        self.done(exchange)

    def request(self, request_id: int) -> Exchange | None:
        """The one that this request of ours has open."""
        return self._requests.get(request_id)

    async def taken(self, *, expires: float) -> None:
        """Until the present messages without an id are over, at most until `expires`."""
        waiting = [exchange for exchange in self._open if exchange.out.request_id is None]
        while any(exchange in self._open for exchange in waiting):
            left = expires - self._clock.monotonic()
            if left <= 0:
                return
            self._over.clear()
            await wait_any(self._clock, left, self._over)

    async def stop(self) -> None:
        """Close all their streams and wait until they are closed."""
        tasks = [exchange.task for exchange in self._open if exchange.task is not None]
        for exchange in tuple(self._open):
            exchange.stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, exchange: Exchange, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Expired):  # then nobody waits for it
            self._broke(exchange, error)
        if exchange.line is not None:  # it was cancelled before it could go on
            exchange.line.hang_up()
        self.done(exchange)

    def _broke(self, exchange: Exchange, error: BaseException) -> None:
        """A mistake of ours: it is reported as such, and costs this one message."""
        what = f"could not be asked because of a mistake in this host ({type(error).__name__})"
        failure = self._client.failures.make("reset", self._client.url, what, sent=exchange.started)
        self._inlet.lost(exchange.out.request_id, failure)
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"a POST to {self._name} failed", "exception": error}
        )

    def done(self, exchange: Exchange) -> None:
        """It is over, however that came."""
        if exchange not in self._open:
            return
        if exchange.timer is not None:
            exchange.timer.cancel()
        del self._open[exchange]
        self._over.set()
        self._bytes -= len(exchange.out.frame)
        request_id = exchange.out.request_id
        if request_id is not None and self._requests.get(request_id) is exchange:
            del self._requests[request_id]

    def _make_room(self, size: int) -> None:
        if self._fits(size):
            return
        now = self._clock.monotonic()
        for exchange in tuple(self._open):
            if not exchange.started and exchange.expires <= now:
                exchange.stop()
                self.done(exchange)
        if not self._fits(size):
            raise QueueFull(
                f"the server is not taking messages: {len(self._open)} are under way; "
                f"nothing was sent"
            )

    def _fits(self, size: int) -> bool:
        if len(self._open) >= MAX_EXCHANGES:
            return False
        if self._bytes + size <= self._max_waiting:
            return True
        waiting = sum(len(each.out.frame) for each in self._open if not each.started)
        return waiting == 0 or waiting + size <= self._max_waiting
