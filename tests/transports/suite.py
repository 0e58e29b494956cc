"""What every transport promises, tested once and run against each.

A `Subject` makes transports whose peer answers the method "echo" with its params, "twice" with two
messages, "leave" by ending the life, and "hold" by reading no more.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from observant_host.errors import QueueFull, TransportClosed
from observant_host.timing.clock import SystemClock
from observant_host.transports.base import Outbound
from tests.support.receivers import Recorder

if TYPE_CHECKING:
    from observant_host.transports.base import Sent, Transport

FAR = float("inf")


class SkippingClock(SystemClock):
    """The real clock, with which a test can skip time that it does not want to wait for."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.skipped


class Subject(Protocol):
    clock: SkippingClock

    def make(self) -> Transport: ...

    async def stuck(self, transport: Transport, recorder: Recorder) -> None:
        """From now on what is sent waits."""


def request(request_id: int, method: str, **params: Any) -> Outbound:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return Outbound(json.dumps(message).encode(), method, request_id)


async def opened(transport: Transport) -> Recorder:
    recorder = Recorder()
    await transport.open(recorder)
    return recorder


async def stuck(transport: Transport, recorder: Recorder) -> None:
    """The peer reads no more, and the way to it is full."""
    transport.send(request(1, "hold"), expires=FAR)
    await recorder.answer_to(1)
    filler = Outbound(b"[" + b" " * (4 << 20) + b"]", "filler")
    assert transport.send(filler, expires=FAR) is not None


def filled(transport: Transport, *, expires: float) -> tuple[Sent, QueueFull]:
    """Send until the queue is full: the last frame that went in, and the refusal."""
    last: Sent | None = None
    for number in range(5000):
        try:
            last = transport.send(request(number, "echo"), expires=expires)
        except QueueFull as refusal:
            assert last is not None
            return last, refusal
    raise AssertionError("the queue has no bound")


class TransportPromises:
    """Inherited by a test class of each transport, which gives the fixture `subject`."""

    async def test_a_frame_sent_is_answered_by_one_frame(self, subject: Subject) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        sent = transport.send(request(7, "echo", text="ä\u2028b"), expires=FAR)
        answer = await recorder.answer_to(7)
        assert sent.started
        assert not sent.withdraw()
        assert answer["result"] == {"text": "ä\u2028b"}
        assert b"\n" not in recorder.frames[0]
        await transport.close()

    async def test_many_frames_keep_their_order(self, subject: Subject) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        for number in range(500):
            transport.send(request(number, "echo", n=number), expires=FAR)
        await recorder.frame_count(500)
        assert [message["id"] for message in recorder.messages] == list(range(500))
        await transport.close()

    async def test_a_frame_of_several_mebibytes_goes_out_and_comes_back(
        self, subject: Subject
    ) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        transport.send(request(1, "echo", text="x" * (5 << 20)), expires=FAR)
        transport.send(request(2, "echo", text="small"), expires=FAR)
        assert len((await recorder.answer_to(1))["result"]["text"]) == 5 << 20
        assert (await recorder.answer_to(2))["result"] == {"text": "small"}
        await transport.close()

    async def test_closing_ends_the_life_once_however_often_it_is_called(
        self, subject: Subject
    ) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        ends = await asyncio.gather(*(transport.close() for _ in range(3)))
        assert {end.kind for end in ends} == {"closed"}
        assert await transport.close() == ends[0]
        assert recorder.ends == [ends[0]]

    async def test_nothing_is_received_after_the_end(self, subject: Subject) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        for number in range(100):
            transport.send(request(number, "twice"), expires=FAR)
        await transport.close()
        await asyncio.sleep(0)
        assert recorder.after_end == 0

    async def test_sending_before_the_start_and_after_the_end_says_that_nothing_was_sent(
        self, subject: Subject
    ) -> None:
        transport = subject.make()
        with pytest.raises(TransportClosed):
            transport.send(request(1, "echo"), expires=FAR)
        await opened(transport)
        await transport.close()
        with pytest.raises(TransportClosed):
            transport.send(request(1, "echo"), expires=FAR)

    async def test_a_life_is_not_opened_twice(self, subject: Subject) -> None:
        transport = subject.make()
        await opened(transport)
        with pytest.raises(TransportClosed):
            await transport.open(Recorder())
        await transport.close()
        with pytest.raises(TransportClosed):
            await transport.open(Recorder())

    async def test_closing_what_was_never_opened_is_an_end_too(self, subject: Subject) -> None:
        transport = subject.make()
        end = await transport.close()
        assert end.kind == "closed"
        with pytest.raises(TransportClosed):
            await transport.open(Recorder())

    async def test_a_peer_that_leaves_ends_the_life_after_its_last_answer(
        self, subject: Subject
    ) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        transport.send(request(1, "leave"), expires=FAR)
        end = await recorder.end()
        assert end.kind in ("exit", "eof", "lost")
        assert recorder.messages == [{"jsonrpc": "2.0", "id": 1, "result": "last words"}]
        assert await transport.close() == end
        assert len(recorder.ends) == 1

    async def test_a_waiting_frame_can_be_withdrawn(self, subject: Subject) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        await subject.stuck(transport, recorder)
        waiting = transport.send(request(2, "echo"), expires=FAR)
        assert not waiting.started
        assert waiting.withdraw()
        assert waiting.withdraw()
        assert not waiting.started
        await transport.close()

    async def test_a_peer_that_does_not_read_fills_a_bounded_queue_and_closing_still_works(
        self, subject: Subject
    ) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        await subject.stuck(transport, recorder)
        _, refusal = filled(transport, expires=FAR)
        assert "nothing was sent" in str(refusal)
        assert (await transport.close()).kind == "closed"

    async def test_frames_that_expired_while_waiting_make_room_and_are_never_sent(
        self, subject: Subject
    ) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        await subject.stuck(transport, recorder)
        expired, _ = filled(transport, expires=subject.clock.monotonic() + 60)
        subject.clock.skipped += 61
        transport.send(request(1, "echo"), expires=FAR)
        assert not expired.started
        assert expired.withdraw()
        await transport.close()

    async def test_cancellation_is_left_to_a_notification(self, subject: Subject) -> None:
        transport = subject.make()
        assert transport.cancel(1) is False
        await transport.close()
