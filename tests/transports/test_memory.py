"""The transport in memory keeps the promises of every transport."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from observant_host.transports.base import End
from observant_host.transports.memory import MemoryTransport
from tests.transports.suite import FAR, SkippingClock, TransportPromises, opened, request, stuck

if TYPE_CHECKING:
    from observant_host.transports.memory import MemoryLink


def behave(frame: bytes, link: MemoryLink) -> None:
    message = json.loads(frame)
    if isinstance(message, list):
        return
    match message["method"]:
        case "echo":
            results = [message["params"]]
        case "twice":
            results = [1, 2]
        case "hold":
            link.hold()
            results = ["holding"]
        case _:
            results = ["last words"]
    for result in results:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        link.reply(json.dumps(answer, ensure_ascii=False).encode())
    if message["method"] == "leave":
        link.end()


class MemorySubject:
    def __init__(self) -> None:
        self.clock = SkippingClock()

    stuck = staticmethod(stuck)

    def make(self) -> MemoryTransport:
        return MemoryTransport(behave, clock=self.clock)


@pytest.fixture
def subject() -> MemorySubject:
    return MemorySubject()


class TestMemory(TransportPromises):
    async def test_a_peer_that_reads_again_gets_what_waited(self, subject: MemorySubject) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        transport.send(request(1, "hold"), expires=FAR)
        await recorder.answer_to(1)
        transport.send(request(2, "echo", n=2), expires=FAR)
        expired = transport.send(request(3, "echo"), expires=0)
        transport.link.resume()
        assert (await recorder.answer_to(2))["result"] == {"n": 2}
        assert not expired.started
        assert [message["id"] for message in recorder.messages] == [1, 2]
        await transport.close()

    async def test_the_peer_can_say_how_it_ended(self, subject: MemorySubject) -> None:
        transport = subject.make()
        recorder = await opened(transport)
        transport.link.end("eof", "enough")
        transport.link.reply(b"{}")
        assert await recorder.end() == End(kind="eof", detail="enough")
        assert recorder.frames == []
