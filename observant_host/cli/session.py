"""What all asking commands share: reading the configuration, finding the running host, or starting
copies of what is needed, and ending cleanly on Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from observant_host.errors import ConfigError, InstanceLocked, Unavailable

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Coroutine,
        Mapping,
        Sequence,
    )

    from observant_host.cli.output import Screen
    from observant_host.cli.progress import Progress
    from observant_host.cli.source import Source
    from observant_host.config import HostConfig
    from observant_host.config_files import Loaded
    from observant_host.host import Host
    from observant_host.service.client import HostClient
    from observant_host.supervision.examine import Examination

T = TypeVar("T")

SOCKET = "host.sock"
"""The running host's private socket, in its state folder."""

LISTING_ALLOWANCE_S = 10.0
"""Above the era's own deadlines: reading the lists of a server that has just been recognised."""


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, where SIGTERM cancels as Ctrl-C does, so that servers are stopped properly.

    Raises KeyboardInterrupt for both.
    """

    async def interruptible() -> T:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        if task is not None:
            loop.add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(interruptible())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class Session:
    """One command's view of configuration and running host."""

    def __init__(
        self, screen: Screen, config: Path | None, *, flags: Mapping[str, object] | None = None
    ) -> None:
        self.screen = screen
        self._given = config
        self._flags = flags or {}
        self._running_names: tuple[str, ...] = ()

    @cached_property
    def loaded(self) -> Loaded:
        """The configuration; its notices and warnings are printed once. Raises ConfigError."""
        from observant_host import config_files

        loaded = config_files.load(self._given, flags=self._flags)
        for warning in loaded.assembled.warnings:
            self.screen.say(f"warning: {warning}", style="yellow")
        for notice in loaded.assembled.notices:
            self.screen.detail(f"note: {notice}")
        return loaded

    def read_again(self) -> Loaded:
        """What the same files, flags and variables give by now. Raises ConfigError."""
        from observant_host import config_files

        return config_files.load(self._given, flags=self._flags)

    @property
    def explicit(self) -> bool:
        """True where a person named the file, by --config or by the variable."""
        from observant_host import config_files

        return self._given is not None or bool(os.environ.get(config_files.CONFIG_VARIABLE))

    @property
    def config(self) -> HostConfig:
        return self.loaded.config

    def server_names(self) -> tuple[str, ...]:
        """Configured servers in order, or those that a running host told where no configuration
        can be read; empty where neither is there."""
        with suppress(ConfigError):
            return tuple(server.name for server in self.config.servers)
        return self._running_names

    @cached_property
    def state_dir(self) -> Path:
        """Where the running host keeps its socket; the default where no file can be read.

        Raises ConfigError where a file was given and is wrong.
        """
        from observant_host import config_files

        try:
            return Path(self.config.host.state_dir or "")
        except ConfigError:
            if self._given is not None:
                raise
            return config_files.Surroundings.of_process().folder("state")

    def required_names(self) -> tuple[str, ...]:
        """Servers that the configuration calls `required`. Raises ConfigError."""
        return tuple(server.name for server in self.config.servers if server.required)

    def ask(
        self,
        work: Callable[[Source], Awaitable[T]],
        *,
        standalone: bool,
        may_start: bool = True,
        only: Sequence[str] = (),
    ) -> T:
        """Do `work` with the running host, else (or with `standalone`) with a host of our own.

        `only`: the servers that a host of our own needs (empty: all). Raises Unavailable where no
        host runs and none may be started.
        """
        return run_async(self._ask(work, standalone=standalone, may_start=may_start, only=only))

    async def _ask(
        self,
        work: Callable[[Source], Awaitable[T]],
        *,
        standalone: bool,
        may_start: bool,
        only: Sequence[str],
    ) -> T:
        if not standalone:
            async with self.running() as running:
                if running is not None:
                    return await work(running)
        if not may_start:
            raise Unavailable(
                f"no host is running with the state folder {self.state_dir}; `observant-host run` "
                "starts one, --standalone starts copies of the servers just to look"
            )
        async with self.own(only) as own:
            return await work(own)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Source | None]:
        """The host that serves from our state folder, or None; says so where there is one."""
        async with self.running_client() as client:
            yield client

    @asynccontextmanager
    async def running_client(self) -> AsyncIterator[HostClient | None]:
        """The same, for what only a running host can do."""
        from observant_host.cli.source import principal
        from observant_host.service.client import HostClient

        client = await HostClient.connect(
            self.state_dir, principal=principal(), trace=trace_of(os.environ)
        )
        if client is None:
            yield None
            return
        self.screen.say(f"asking the running host ({self.state_dir / SOCKET})")
        try:
            yield client
        finally:
            await client.close()

    @asynccontextmanager
    async def own(self, only: Sequence[str] = ()) -> AsyncIterator[Source]:
        """A host of our own, with copies of the servers named (empty: all), stopped afterwards."""
        from observant_host.cli.progress import Progress
        from observant_host.cli.source import OwnHost

        config = hushed(patient(self.config, only), self.screen)
        self.screen.say(f"starting {_copies(sum(one.enabled for one in config.servers))}")
        host = await self._started(config, Progress)
        try:
            yield OwnHost(host)
        finally:
            await host.close()

    async def _started(self, config: HostConfig, progress: type[Progress]) -> Host:
        """Ours is the state folder where nobody holds it; else its memory is only read."""
        try:
            return await self._start(config, progress, state_dir=self.state_dir)
        except InstanceLocked:
            return await self._start(config, progress, recall_from=self.state_dir)

    async def _start(self, config: HostConfig, progress: type[Progress], **folders: Path) -> Host:
        from observant_host.host import Host

        host = Host(
            config=config,
            record="state_dir" in folders and config.telemetry.record,
            partial=len(config.servers) < len(self.config.servers),
            secrets=self.loaded.secrets,
            configure_sdk=True,
            **folders,  # type: ignore[arg-type]  # two keywords, both paths
        )
        await host.open()
        shown = progress(self.screen, lambda: host.servers)
        shown.start()
        try:
            await host.settled()
        finally:
            shown.stop()
            await shown.wait()
        return host

    def explain(self, server: str) -> bytes:
        """The document of `explain --json`: from the running host, else from the record."""
        return run_async(self._explain(server))

    async def _explain(self, server: str) -> bytes:
        async with self.running() as running:
            if running is not None:
                shown = msgspec.json.decode(await running.servers())["servers"]
                self._running_names = tuple(one["name"] for one in shown)
                return await running.decisions(server)
        from observant_host.incidents.record import read_decisions

        self.screen.detail(f"reading the record in {self.state_dir}")
        found = await asyncio.to_thread(read_decisions, [self.state_dir], server=server)
        return msgspec.json.encode({"server": server, "decisions": found})

    def examine(
        self, names: Sequence[str], *, standalone: bool, reason: str = ""
    ) -> list[Examination]:
        """A person's look at these servers, one after the other, in processes of their own: by the
        running host where there is one, which knows its own file."""
        return run_async(self._examine(names, standalone=standalone, reason=reason))

    async def _examine(
        self, names: Sequence[str], *, standalone: bool, reason: str
    ) -> list[Examination]:
        from observant_host.cli.source import principal
        from observant_host.host import Examiner
        from observant_host.supervision.examine import Examination

        if not standalone:
            async with self.running_client() as client:
                if client is not None:
                    answers = [await client.examine(name, reason=reason) for name in names]
                    return [msgspec.json.decode(one, type=Examination) for one in answers]

        servers = [server for server in self.config.servers if server.name in names]
        who = principal()
        async with Examiner(self.config, state_dir=self.state_dir) as examiner:
            return [await examiner.examine(one, principal=who, reason=reason) for one in servers]


def trace_of(variables: Mapping[str, str]) -> dict[str, str]:
    """The trace that started this command, as headers. Source: OpenTelemetry specification,
    environment variables as context propagation carriers (TRACEPARENT, TRACESTATE)."""
    given = ((name, variables.get(name.upper(), "")) for name in ("traceparent", "tracestate"))
    return {
        name: value for name, value in given if value.isascii() and value.isprintable() and value
    }


def patient(config: HostConfig, only: Sequence[str]) -> HostConfig:
    """`config` for one question: only these servers, and a start that waits for every verdict."""
    servers = tuple(one for one in config.servers if not only or one.name in only)
    slowest = max(
        (one.timing.probe_timeout_s + one.timing.legacy_probe_timeout_ms / 1e3 for one in servers),
        default=0.0,
    )
    host = msgspec.structs.replace(
        config.host,
        startup_deadline_s=max(config.host.startup_deadline_s, slowest + LISTING_ALLOWANCE_S),
    )
    return msgspec.structs.replace(config, servers=servers, host=host)


def hushed(config: HostConfig, screen: Screen) -> HostConfig:
    """`config` for a command whose person wants an answer: logs only as far as -v asks."""
    level = ("error", "info", "debug")[max(0, min(2, screen.verbosity))]
    telemetry = msgspec.structs.replace(
        config.telemetry, log_level=level, log_format="console" if screen.live else "json"
    )
    return msgspec.structs.replace(config, telemetry=telemetry)


def _copies(count: int) -> str:
    return "a copy of one server" if count == 1 else f"copies of {count} servers"
