"""The northbound service of a running host: its listeners, and the order in which all begins and
ends.

    listen (healthz answers) -> open the host -> private socket -> settle (readyz may turn 200)
    stop -> readyz 503, drain_delay_s -> drain -> remove the socket -> close the host
         -> close the listeners
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from observant_host.errors import ConfigError, HostError
from observant_host.service import private_socket
from observant_host.service.access import Access, Hall, listeners
from observant_host.service.access.fronts import Fronts
from observant_host.service.access.hall import HEAD_S
from observant_host.service.access.places import served_at
from observant_host.service.access.tls import tls_context
from observant_host.service.admin import add_health, add_metadata, add_metrics
from observant_host.service.api.door import add_api, refusal, socket_owner
from observant_host.service.console.routes import add_console
from observant_host.service.events import Events
from observant_host.service.mcp.desk import Desk
from observant_host.service.mcp.http import PATH, Door
from observant_host.service.mcp.joining import add_joining
from observant_host.service.mcp.key_file import keys_of
from observant_host.service.mcp.legacy_http import LegacyDoor
from observant_host.timing.clock import SystemClock
from observant_host.timing.tasks import Signal, spawn, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from ssl import SSLContext

    from observant_host.service.access import Address
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.joining import Kind
    from observant_host.service.served import Served
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.vocabulary import Fact
    from observant_host.timing.clock import Clock

    Before = Callable[[web.Server], Fronts]

CLOSING_S: Final = 1.0
"""For a connection that is still open after draining; its request has been answered or refused."""


class Service:
    """The listeners of one host. `addresses` says where it can be reached, once it listens;
    `fronts` are what stands before aiohttp where agents are served.

    `head_s`: a connection without a whole request's head is closed after so long.
    """

    def __init__(
        self,
        host: Served,
        *,
        clock: Clock | None = None,
        head_s: float = HEAD_S,
        kind: Kind = "run",
    ) -> None:
        self.host = host
        self._kind: Kind = kind
        self._head_s = head_s
        self._clock = clock or SystemClock()
        self.desk = Desk(host, clock=self._clock)
        self.legacy = LegacyDoor(self.desk, host, clock=self._clock)
        self.events = Events(host, clock=self._clock)
        self._listeners: list[asyncio.Server] = []
        self.fronts: list[Fronts] = []
        self._runners: list[web.AppRunner] = []
        self._private_in: Path | None = None
        self._opening: Signal | None = None
        self._telemetry: Telemetry | None = None
        self.addresses: dict[str, str] = {}

    async def listen(self, *, opens_later: bool = False) -> None:
        """The network's listeners. `opens_later`: the host is opened next, and `opened` told.
        Raises ConfigError: not allowed, or the address is taken."""
        self._opening = Signal() if opens_later else None
        config = self.host.config
        found = listeners(config.service, config.tokens)
        self.desk.inputs.use_keys(await asyncio.to_thread(keys_of, config.service))
        access = await asyncio.to_thread(Access, config, clock=self._clock, tell=self._tell)
        tls = await asyncio.to_thread(tls_context, config.service)
        for name, at in found.items():
            app = self._application()
            hall = Hall(config.service, at, access=access, tell=self._tell, clock=self._clock)
            hall.guard(app, refusal=refusal)
            parts = served_at(name, alone="mcp" not in found)
            await self._serve(app, access, parts - {"mcp"})
            before = self._serve_agents(app, access, hall) if "mcp" in parts else None
            await self._listen_tcp(name, app, at, tls=tls, before=before)

    async def _serve(self, app: web.Application, access: Access, parts: frozenset[str]) -> None:
        """What one listener serves to people: the parts of `access.places`."""
        add_health(app, self.host)
        if "metrics" in parts:
            add_metrics(app, self.host, access)
        if "open metrics" in parts:
            add_metrics(app, self.host, None)
        if "api" in parts:
            identify, events = access.identify, self.events
            add_api(app, self.host, identify=identify, events=events, guarded=True)
        if "console" in parts:
            await add_console(app, self.host, keeper=access, clock=self._clock)

    def _tell(self, fact: Fact) -> None:
        """Before the host is open there is nobody to tell."""
        if self._telemetry is None:
            with suppress(HostError):
                self._telemetry = self.host.telemetry
        if self._telemetry is not None:
            self._telemetry.count(fact)

    def opened(self) -> None:
        """The host is open: agents are served, and counted for every scrape."""
        if self._opening is not None:
            self._opening.set()
        self.host.telemetry.watch_clients(self.desk.clients.count)

    def _application(self) -> web.Application:
        return web.Application(client_max_size=self.host.config.host.max_message_bytes)

    def _serve_agents(self, app: web.Application, access: Access, hall: Hall) -> Before:
        """Agents have a route as everything has, and a way past aiohttp for what they repeat."""

        async def waited_for(request: web.Request) -> Caller:
            """Who asks. We listen before the host is open; who comes meanwhile waits a little."""
            caller = await access.identify(request, "mcp")
            if self._opening is not None:
                await wait_any(self._clock, None, self._opening)
            return caller

        door = Door(self.desk, clock=self._clock, identify=waited_for, legacy=self.legacy)
        door.add_to(app)
        if access.issued is not None:
            add_metadata(app, access.issued)
        return partial(
            Fronts,
            key_of=access.key_of,
            known=partial(access.known, scope="mcp"),
            answer=partial(hall.answered, door.post, PATH),
            clock=self._clock,
            idle_s=self._head_s,
            max_body=self.host.config.host.max_message_bytes,
        )

    async def listen_privately(self, state_dir: Path) -> None:
        """The socket in `state_dir`; the host must hold its lock."""
        app = self._application()
        add_health(app, self.host)
        add_metrics(app, self.host, None)
        add_api(app, self.host, identify=socket_owner, events=self.events)
        add_joining(app, self.host, desk=self.desk, clock=self._clock, kind=self._kind)
        listener = await asyncio.to_thread(private_socket.listen, state_dir)
        runner = await self._runner(app)
        await web.SockSite(runner, listener).start()
        self._private_in = state_dir
        self.addresses["socket"] = str(private_socket.socket_path(state_dir))

    async def _listen_tcp(
        self,
        what: str,
        app: web.Application,
        at: Address,
        *,
        tls: SSLContext | None,
        before: Before | None,
    ) -> None:
        runner = await self._runner(app)
        protocol: Any = runner.server
        if before is not None and runner.server is not None:
            protocol = before(runner.server)
            self.fronts.append(protocol)
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(protocol, at.host, at.port, ssl=tls)
        except OSError as error:
            problem = (
                f"service: cannot listen on {at.host}:{at.port}: {error.strerror or error}; "
                "is another host running? Choose another address by [service] listen or --listen"
            )
            raise ConfigError([problem]) from error
        self._listeners.append(server)
        host, port = server.sockets[0].getsockname()[:2]
        scheme = "http" if tls is None else "https"
        self.addresses[what] = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    async def _runner(self, app: web.Application) -> web.AppRunner:
        # a client that goes away cancels its request, and with it the call
        runner = web.AppRunner(
            app,
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=CLOSING_S,
            keepalive_timeout=self._head_s,
        )
        await runner.setup()
        self._runners.append(runner)
        return runner

    async def hide(self) -> None:
        """No new connection finds the private socket; open ones go on. While the host still holds
        the folder's lock: afterwards it may be another host's."""
        folder, self._private_in = self._private_in, None
        if folder is not None:
            await asyncio.to_thread(private_socket.remove, folder)

    async def close(self) -> None:
        """Idempotent."""
        self.legacy.close()
        for server in self._listeners:
            server.close()
        for fronts in self.fronts:
            await fronts.settle(CLOSING_S)
        runners, self._runners = self._runners, []
        for runner in runners:
            await runner.cleanup()
        self.events.close()  # nobody can join any more


async def serve(
    host: Served,
    stop: Signal,
    *,
    clock: Clock,
    state_dir: Path | None,
    hurry: Signal,
    listening: Callable[[dict[str, str]], None] | None = None,
    published: Callable[[], None] | None = None,
) -> None:
    """Run `host` and its service until `stop` is set, then drain and end both, within bounds.

    `hurry` (a second signal) cuts the draining and the closing short. `listening` is told the
    addresses, `published` that start-up is over. Raises ConfigError, NameCollision, InstanceLocked.
    """
    service = Service(host, clock=clock)
    try:
        await service.listen(opens_later=True)
        await host.open()
        service.opened()
        if state_dir is not None:
            await service.listen_privately(state_dir)
        if listening is not None:
            listening(service.addresses)
        await wait_any(clock, None, stop, host.ready, host.over)
        if not stop.is_set():
            await host.settled()
            if published is not None:
                published()
            await wait_any(clock, None, stop, host.over)
        await _drain(service, clock=clock, hurry=hurry)
    finally:
        await service.hide()
        await _close(host, clock=clock, hurry=hurry)
        await service.close()


async def _close(host: Served, *, clock: Clock, hurry: Signal) -> None:
    closed = Signal()

    async def close() -> None:
        try:
            await host.close()
        finally:
            closed.set()

    closing = spawn("closing the host", close(), on_error=_raised_below)
    await wait_any(clock, None, hurry, closed)
    if hurry.is_set():
        host.hurry()
    await closing


def _raised_below(_name: str, _error: BaseException) -> None:
    """Whoever awaits the closing gets it."""


async def _drain(service: Service, *, clock: Clock, hurry: Signal) -> None:
    host = service.host
    settings = host.config.service
    host.leave()
    await wait_any(clock, settings.drain_delay_s, hurry, host.over)
    host.refuse_calls()
    service.desk.close()
    await wait_any(clock, settings.drain_timeout_s, hurry, host.idle, host.over)
