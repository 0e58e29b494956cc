"""A connection of a network listener: requests whose head is known are answered here, all others
are aiohttp's.

Traded for speed: reading a head, making a request, a writer and two tasks of it costs aiohttp as
much as the call behind it. Programs repeat themselves: after the first
request of each kind was read, judged and answered the ordinary way, the next one begins with the
same bytes, and all that is to be found out again is whether its token may still be used.

aiohttp never sees what is answered here. It gets everything from the first byte that is not plainly
the next whole request with a known head, and has the connection until that is answered; where it is
not certain that nothing is left of it, for ever. Only public parts of aiohttp are used; what is
relied on besides is written in the tests.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from aiohttp import web
from aiohttp.payload import Payload

from observant_host.decisions.http_heads import head_of
from observant_host.service.access.straight import Straight, is_read, said_by
from observant_host.service.access.whole_answer import WholeAnswer
from observant_host.timing.tasks import begin

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

    from observant_host.decisions.http_heads import Head
    from observant_host.service.access.fronts import Fronts
    from observant_host.service.callers import Caller
    from observant_host.timing.clock import Timer

HELD_S: Final = 1.0
"""For a body that is written apart from its head; then aiohttp waits on."""
EARLY_BYTES: Final = 64 * 1024
"""Of what comes before the last answer is out; then nothing more is read."""


class Front(asyncio.Protocol):
    """One connection. It stands before aiohttp's own protocol for it."""

    transport: asyncio.Transport | None = None
    _task: asyncio.Task[None] | None = None
    _timer: Timer | None = None
    """Ends the connection where nothing comes. aiohttp has its own, which knows of its own requests
    alone; it is on where `_inner_times`."""
    _inner_times = True
    _holding: Timer | None = None
    _last = 0.0
    _busy = False
    _full = False
    _head: Head | None = None
    _passed = 0
    """Bytes that went to aiohttp since its last answer. They began with `_head`."""
    _held = b""
    _early = b""

    def __init__(self, inner: RequestHandler, of: Fronts) -> None:
        self.inner = inner
        self.of = of

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.inner.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.inner.connection_lost(error)
        self._stop_timer()
        self._released()
        self.cancel()
        self.of.busy.discard(self)  # also what was answered and never read
        self.of.look()

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def eof_received(self) -> None:
        self.inner.eof_received()

    def pause_writing(self) -> None:
        self._full = True
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self._full = False
        self.inner.resume_writing()
        if self._busy and self._task is None:
            self._over()

    def data_received(self, data: bytes) -> None:
        apart = bool(self._held)
        if apart:
            data = self._released() + data
        if self._busy:
            self._early += data
            if len(self._early) > EARLY_BYTES and self.transport is not None:
                self.transport.pause_reading()
        elif self._passed or not self._goes_straight(data, apart=apart):
            self._pass_on(data)

    def _goes_straight(self, data: bytes, *, apart: bool) -> bool:
        """Whether this, the beginning of a request, is answered here. `apart`: its head came by
        itself."""
        of, head = self.of, head_of(data)
        self._head = head
        if head is None or head.length > of.max_body or of.closing:
            return False
        if (said := of.heads.find(head.digest)) is None:
            return False
        if head.begin + head.length == len(data):
            if (caller := of.known(said.key)) is None:
                return False
            self._answer(Straight(self, said, data[head.begin :], head.varied), caller)
        elif head.begin == len(data) and not apart:
            self._hold(data)
        else:
            return False
        return True

    def _pass_on(self, data: bytes) -> None:
        self._passed += len(data)
        self.inner.data_received(data)

    def _hold(self, data: bytes) -> None:
        """Many programs write a head and its body apart: the second comes at once."""
        clock = self.of.clock
        if self._inner_times:
            self._stop_inner_timer()
        self._held = data
        self._holding = clock.call_at(clock.monotonic() + HELD_S, self._let_go)

    def _let_go(self) -> None:
        self._pass_on(self._released())

    def _released(self) -> bytes:
        """What is held, no longer."""
        data, self._held = self._held, b""
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
        return data

    def _answer(self, asked: Straight, caller: Caller) -> None:
        if self._inner_times:
            self._stop_inner_timer()
        self._busy = True
        self.of.busy.add(self)
        task = begin("request", self._answered(asked, caller))
        if not task.done():
            self._task = task

    def _stop_inner_timer(self) -> None:
        """It knows nothing of a request that begins here."""
        self.inner.keep_alive(True)
        self._inner_times = False

    async def _answered(self, asked: Straight, caller: Caller) -> None:
        try:
            response = await self.of.answer(asked, caller)
            if type(response) is WholeAnswer:
                if self.transport is not None:
                    self.transport.write(response.whole)
            else:
                await response.prepare(asked.request)
                await response.write_eof()
                if not response.keep_alive:
                    self._close()
        except ConnectionError:
            self._close()
        except BaseException:
            self._close()
            raise
        finally:
            self._task = None
            if not self._full:
                self._over()

    def _over(self) -> None:
        """The next one may begin."""
        of = self.of
        self._busy = False
        of.busy.discard(self)
        if of.closing:
            of.look()
        self._last = of.clock.monotonic()
        if self._timer is None and self.transport is not None:
            self._timer = of.clock.call_at(self._last + of.idle_s, self._look)
        if self._early and self.transport is not None and not self.transport.is_closing():
            data, self._early = self._early, b""
            self.transport.resume_reading()
            self.data_received(data)

    def _look(self) -> None:
        """Whether nothing came for too long, of which aiohttp knows nothing."""
        of, self._timer = self.of, None
        if self._busy or self._held or self.transport is None:
            return
        if of.clock.monotonic() >= self._last + of.idle_s:
            self._close()
        else:
            self._timer = of.clock.call_at(self._last + of.idle_s, self._look)

    def _close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def begun(self) -> None:
        """aiohttp has a request of this connection, and times what comes after it."""
        self._stop_timer()
        self._inner_times = True

    def answered(self, request: web.Request, response: web.StreamResponse) -> None:
        """aiohttp's request is over, or will be by one write. Where nothing but that one was passed
        on, the next begins here."""
        head, passed = self._head, self._passed
        self._head, self._passed = None, 0
        if head is None or passed != head.begin + head.length or not is_read(request, head):
            self._give_up()
        elif type(response) is WholeAnswer:
            if (key := self.of.key_of(request.headers)) is not None:
                self.of.heads.keep(head, said_by(request, key))
        elif not (response.prepared or _is_whole(response)):
            self._give_up()

    def _give_up(self) -> None:
        """From now on all of the connection is aiohttp's."""
        self._stop_timer()
        if self.transport is not None:
            self.transport.set_protocol(self.inner)


def front_of(request: web.Request) -> Front | None:
    """What stands before aiohttp on the connection of a request."""
    transport = request.transport
    protocol = None if transport is None else transport.get_protocol()
    return protocol if isinstance(protocol, Front) else None


def _is_whole(response: web.StreamResponse) -> bool:
    """Whether it goes out by one write, as soon as it is returned."""
    return isinstance(response, web.Response) and not isinstance(response.body, Payload)
