"""One supervised peer in memory, on a clock that stands still: no test here waits for real time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from observant_host.config import HttpServer, ServerConfig, StdioServer
from observant_host.peers.input_handlers import NO_HANDLERS
from observant_host.state_files import Memory
from observant_host.supervision.declared import declare
from observant_host.supervision.memory import HostMemory
from observant_host.supervision.supervisor import PeerSupervisor
from observant_host.supervision.surroundings import Surroundings
from observant_host.telemetry import setup
from observant_host.telemetry.masking import Masker
from observant_host.transports.memory import MemoryLink, MemoryTransport
from observant_host.wire.envelope import ClientInfo
from tests.support.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.transports.base import Transport

Message = dict[str, Any]
Reply = dict[str, Any] | None

DISCOVERED: dict[str, Any] = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "1"}},
}
CHANGING: dict[str, Any] = {**DISCOVERED, "capabilities": {"tools": {"listChanged": True}}}
FOLLOWED: dict[str, Any] = {
    **DISCOVERED,
    "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}},
}
INITIALIZED: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "fake", "version": "1"},
}
UNKNOWN: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}


def result(value: dict[str, Any]) -> Reply:
    return {"result": value}


def tools(*names: str) -> Reply:
    return result({"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]})


class Script:
    """What the peer answers by method, None for silence; `heard` is what each life was sent."""

    def __init__(self, **answers: Reply | Callable[[Message], Reply]) -> None:
        self.answers: dict[str, Any] = {"tools/list": tools("echo"), **answers}
        self.lives: list[MemoryTransport] = []
        self.heard: list[list[Message]] = []

    def __setitem__(self, method: str, reply: Any) -> None:
        self.answers[method] = reply

    def transport(self, clock: ManualClock) -> MemoryTransport:
        heard: list[Message] = []
        self.heard.append(heard)

        def handle(frame: bytes, link: MemoryLink) -> None:
            message = json.loads(frame)
            heard.append(message)
            reply = self.answers.get(message["method"])
            answer = reply(message) if callable(reply) else reply
            if answer is not None and "id" in message:
                say(link, {"id": message["id"], **answer})

        self.lives.append(MemoryTransport(handle, clock=clock))
        return self.lives[-1]

    def acknowledge(self, message: Message) -> Reply:
        """The answer to a subscriptions/listen: all of it is granted, and the stream stands."""
        granted = {"notifications": message["params"]["notifications"]}
        self.in_stream(message["id"], "subscriptions/acknowledged", **granted)
        return None

    def in_stream(self, id_: object, method: str, **params: Any) -> None:
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": id_}}
        say(self.link, {"method": f"notifications/{method}", "params": {**params, **meta}})

    def listens(self, life: int = -1) -> list[Message]:
        return [m for m in self.heard[life] if m["method"] == "subscriptions/listen"]

    def change(self) -> None:
        """Say on the present stream that the tools changed."""
        self.in_stream(self.listens()[-1]["id"], "tools/list_changed")

    @property
    def link(self) -> MemoryLink:
        """The way back to the host in the present life."""
        return self.lives[-1].link

    def methods(self, life: int = -1) -> list[str]:
        return [message["method"] for message in self.heard[life]]

    def first_id(self, method: str, life: int = -1) -> int:
        return next(m["id"] for m in self.heard[life] if m["method"] == method)


def say(link: MemoryLink, message: dict[str, Any]) -> None:
    link.reply(json.dumps({"jsonrpc": "2.0", **message}).encode())


def changing() -> Script:
    """A modern server that tells of changes to its tools."""
    script = Script(**{"server/discover": result(CHANGING)})
    script["subscriptions/listen"] = script.acknowledge
    return script


class Stage:
    """A peer, its script, its clock, and all that was told. `url`: supervised as one over HTTP."""

    def __init__(
        self,
        script: Script,
        *,
        memory: Memory | None = None,
        remember_modern: bool = True,
        url: bool = False,
        **keys: Any,
    ) -> None:
        self.script = script
        self.clock = ManualClock()
        self.telemetry, self.told = setup.capturing()
        self.decisions: list[Any] = []
        self.broken: list[Any] = []
        self.random = 1.0
        self.memory = HostMemory(memory or Memory(), clock=self.clock, changed=lambda: None)
        self.around = Surroundings(
            telemetry=self.telemetry,
            clock=self.clock,
            random=lambda: self.random,
            memory=self.memory,
            transport=self._transport,
            client_info=ClientInfo("test", "1"),
            handlers=NO_HANDLERS,
            masker=Masker(),
            remember_modern=remember_modern,
            changed=lambda name: None,
            decided=lambda name, decision: self.decisions.append(decision),
            broken=lambda name, error: self.broken.append(error),
        )
        server = declare(
            "peer",
            HttpServer("http://fake/mcp") if url else StdioServer(["fake"]),
            allow_legacy=keys.pop("allow_legacy", False),
            keys={"healthy_after_s": 60, **keys},
        )
        self.peer = PeerSupervisor(server, self.around)
        self.fail_to_open: Exception | None = None

    def _transport(self, server: ServerConfig) -> Transport:
        if self.fail_to_open is not None:
            raise self.fail_to_open
        transport = self.script.transport(self.clock)
        if server.transport != "stdio":
            transport.kind = "http"  # type: ignore[assignment]  # a wire in memory, lives as over HTTP
        return transport

    async def __aenter__(self) -> Stage:
        self.peer.start()
        await self.clock.settle()
        await self.clock.settle()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.peer.stop()
        await self.peer.ended()
        assert self.broken == []

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        await self.clock.settle()

    @property
    def state(self) -> tuple[str, str | None, str]:
        status = self.peer.record.status
        return status.state, status.cause, status.reason

    def facts(self, kind: type[Any]) -> list[Any]:
        return [one.fact for one in self.told if type(one.fact) is kind]
