"""A life over memory whose server is the test: it reads what the host wrote, and answers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from observant_host.config import EraPolicy, ServerConfig, StdioServer, Timing
from observant_host.peers.eras import LegacyEra, ModernEra
from observant_host.peers.input_handlers import NO_HANDLERS, InputHandlers
from observant_host.peers.life import Life
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.setup import capturing
from observant_host.telemetry.vocabulary import FrameDropped, HostLifecycle
from observant_host.transports.memory import MemoryLink, MemoryTransport
from observant_host.wire.envelope import ClientInfo
from tests.support.clock import ManualClock

if TYPE_CHECKING:
    from observant_host.decisions.subscription import Filter
    from observant_host.decisions.terms import Reason
    from observant_host.peers.subscriptions import Subscription

CLIENT = ClientInfo("tested-host", "1")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


class Listener:
    """A LifeListener that remembers."""

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.late_modern = 0
        self.evidence = 0
        self.traffic = 0
        self.doubts = 0
        self.renewals = 0
        self.refused: Reason | None = None
        self.breaks: list[tuple[Reason, str]] = []

    def list_changed(self, kind: str, told_in: object = None) -> None:
        self.changed.append(kind)

    def late_modern_evidence(self) -> None:
        self.late_modern += 1

    def evidence_arrived(self) -> None:
        self.evidence += 1

    def any_traffic(self) -> None:
        self.traffic += 1

    def ailing(self) -> None:
        self.doubts += 1

    def session_renewed(self) -> None:
        self.renewals += 1

    def stale_lists(self) -> None:
        self.changed.append("stale")

    def legacy_refused(self) -> Reason | None:
        return self.refused

    def broken(self, reason: Reason, detail: str) -> None:
        self.breaks.append((reason, detail))


def server(
    *, timing: Timing | None = None, era: EraPolicy | None = None, **fields: Any
) -> ServerConfig:
    return ServerConfig(
        name="tested",
        launch=StdioServer(["true"]),
        fingerprint="sha256:0",
        timing=timing or Timing(),
        era=era or EraPolicy(),
        **fields,
    )


class Desk:
    """`sent` holds what the host wrote; `answer` is called with each message, if set."""

    def __init__(
        self,
        config: ServerConfig | None = None,
        *,
        clock: ManualClock | None = None,
        handlers: InputHandlers = NO_HANDLERS,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.clock = clock or ManualClock()
        self.telemetry, self.told = capturing()
        self.listener = Listener()
        self.sent: list[dict[str, Any]] = []
        self.answer: Any = None
        self.transport = MemoryTransport(self._received, clock=self.clock)
        self.life = Life(
            config or server(),
            generation=1,
            transport=self.transport,
            telemetry=self.telemetry,
            clock=self.clock,
            client_info=CLIENT,
            input_handlers=handlers,
            listener=self.listener,
            masker=Masker(secrets),
        )

    def _received(self, frame: bytes, _link: MemoryLink) -> None:
        message = json.loads(frame)
        self.sent.append(message)
        if self.answer is not None:
            self.answer(message)

    async def modern(self, **capabilities: Any) -> Desk:
        await self.life.open()
        era = ModernEra(version=MODERN, client_info=CLIENT)
        self.life.settle(era, server_info=None, capabilities=capabilities, instructions=None)
        return self

    async def legacy(self, version: str = "2025-11-25", **capabilities: Any) -> Desk:
        await self.life.open()
        era = LegacyEra(version=version)
        self.life.settle(era, server_info=None, capabilities=capabilities, instructions=None)
        return self

    async def following(self, asked: Filter, granted: dict[str, Any] | None = None) -> Subscription:
        """A stream of changes that the server has acknowledged (all of it, unless `granted`)."""
        answer, self.answer = self.answer, None
        trace = self.telemetry.count(HostLifecycle(what="test"))
        opened = self.life.subscriptions.open(
            asked, expires=self.clock.monotonic() + 10, trace=trace
        )
        await self.settle()
        granted = self.sent[-1]["params"]["notifications"] if granted is None else granted
        self.in_stream(opened.id, "subscriptions/acknowledged", notifications=granted)
        await self.settle()
        self.answer = answer
        return opened

    def in_stream(self, id_: object, method: str, **params: Any) -> None:
        params = {**params, "_meta": {META + "subscriptionId": id_}}
        self.say({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params})

    def say(self, message: Any) -> None:
        """The server writes one message."""
        frame = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.transport.link.reply(frame)

    def result(self, message: dict[str, Any], result: Any) -> None:
        self.say({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def error(self, message: dict[str, Any], code: int, data: Any = None) -> None:
        error = {"code": code, "message": f"error {code}", **({"data": data} if data else {})}
        self.say({"jsonrpc": "2.0", "id": message["id"], "error": error})

    async def settle(self) -> None:
        await self.clock.settle()

    def methods(self) -> list[str | None]:
        return [message.get("method") for message in self.sent]

    def facts(self, kind: type[Any]) -> list[Any]:
        return [done.fact for done in self.told if type(done.fact) is kind]

    def drops(self) -> list[str]:
        return [fact.kind for fact in self.facts(FrameDropped)]

    def soon(self, seconds: float = 60.0) -> float:
        return self.clock.monotonic() + seconds


def call(desk: Desk, params: Any = None, **options: Any) -> asyncio.Task[Any]:
    options.setdefault("expires", desk.soon())
    return asyncio.create_task(
        desk.life.request("tools/call", params or {"name": "echo"}, **options)
    )
