"""A life over an HTTP transport in memory: the test sees each Outbound, answers or loses it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from observant_host.config import HttpServer, ServerConfig, Timing
from observant_host.errors import HttpFailure
from observant_host.peers.eras import LegacyEra, ModernEra
from observant_host.peers.input_handlers import NO_HANDLERS
from observant_host.peers.life import Life
from observant_host.telemetry.setup import capturing
from observant_host.transports.base import Answering, End
from tests.peers.desk import CLIENT, MODERN, Listener
from tests.support.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.errors import HttpFailureKind
    from observant_host.transports.base import Outbound, Receiver


class Posted:
    """A transports.base.Sent that has left."""

    started = True

    def withdraw(self) -> bool:
        return False


class FakeHttp:
    """`sent` holds every Outbound; `answer` is called with each, if set."""

    kind: Literal["http"] = "http"
    pid = None
    ending = False
    stderr_tail = ""

    def __init__(self) -> None:
        self.sent: list[Outbound] = []
        self.cancelled: list[int] = []
        self.listens = 0
        self.forgets = 0
        self.answer: Callable[[Outbound], None] | None = None
        self.receiver: Receiver | None = None

    async def open(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def send(self, out: Outbound, expires: float) -> Posted:
        self.sent.append(out)
        if self.answer is not None:
            self.answer(out)
        return Posted()

    def cancel(self, request_id: int) -> bool:
        self.cancelled.append(request_id)
        return all(out.modern for out in self.sent if out.request_id == request_id)

    async def taken(self, *, expires: float) -> None:
        """Everything is taken at once."""

    def listen(self) -> None:
        self.listens += 1

    def forget_session(self) -> None:
        self.forgets += 1

    async def close(self) -> End:
        end = End(kind="closed", detail="closed")
        if self.receiver is not None:
            self.receiver.ended(end)
        return end


class WebDesk:
    def __init__(self, **keys: Any) -> None:
        self.clock = ManualClock()
        self.telemetry, self.told = capturing()
        self.listener = Listener()
        self.transport = FakeHttp()
        server = ServerConfig(
            name="tested",
            launch=HttpServer("http://127.0.0.1/mcp"),
            fingerprint="sha256:0",
            timing=Timing(),
            **keys,
        )
        self.life = Life(
            server,
            generation=1,
            transport=self.transport,
            telemetry=self.telemetry,
            clock=self.clock,
            client_info=CLIENT,
            input_handlers=NO_HANDLERS,
            listener=self.listener,
        )

    async def modern(self, **capabilities: Any) -> WebDesk:
        await self.life.open()
        era = ModernEra(version=MODERN, client_info=CLIENT)
        self.life.settle(era, server_info=None, capabilities=capabilities, instructions=None)
        return self

    async def legacy(self, version: str = "2025-11-25", **capabilities: Any) -> WebDesk:
        await self.life.open()
        self.life.probes.initialize = self.life.send_initialize(version)
        self.result(self.sent(0), initialized(version))
        self.life.settle(
            LegacyEra(version=version),
            server_info=None,
            capabilities=capabilities,
            instructions=None,
        )
        self.transport.sent.clear()
        return self

    def sent(self, index: int = -1) -> Outbound:
        return self.transport.sent[index]

    def methods(self) -> list[str]:
        return [out.method for out in self.transport.sent]

    def soon(self, seconds: float = 60.0) -> float:
        return self.clock.monotonic() + seconds

    def come(self, message: Any, out: Outbound | None, *, status: int = 200) -> bool:
        """A message on the response to `out` (None: on the stream that answers nothing)."""
        receiver = self.transport.receiver
        assert receiver is not None
        answering = None
        if out is not None:
            answering = Answering(out.request_id, status, "application/json")
        return receiver.frame_received(
            json.dumps({"jsonrpc": "2.0", **message}).encode(), answering
        )

    def result(self, out: Outbound, result: Any) -> bool:
        return self.come({"id": out.request_id, "result": result}, out)

    def lose(self, out: Outbound, kind: HttpFailureKind, **facts: Any) -> None:
        receiver = self.transport.receiver
        assert receiver is not None
        assert out.request_id is not None
        failure = HttpFailure(f"the URL failed ({kind})", kind=kind, url="http://x", **facts)
        receiver.request_lost(out.request_id, failure)


def initialized(version: str = "2025-11-25") -> dict[str, Any]:
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "fake", "version": "1"},
    }


def error_body(code: int, request_id: object) -> bytes:
    error = {"code": code, "message": f"error {code}"}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
