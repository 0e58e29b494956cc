"""What all asking commands share: reading the configuration, finding the running host, or starting
copies of what is needed, and ending cleanly on Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from observant_host.errors import ConfigError, Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

    from observant_host.cli.output import Screen
    from observant_host.cli.source import Source
    from observant_host.config import HostConfig
    from observant_host.config_files import Loaded
    from observant_host.supervision.examine import Examination

T = TypeVar("T")

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

    def __init__(self, screen: Screen, config: Path | None) -> None:
        self.screen = screen
        self._given = config

    @cached_property
    def loaded(self) -> Loaded:
        """The configuration; its notices and warnings are printed once. Raises ConfigError."""
        from observant_host import config_files

        loaded = config_files.load(self._given)
        for warning in loaded.assembled.warnings:
            self.screen.say(f"warning: {warning}", style="yellow")
        for notice in loaded.assembled.notices:
            self.screen.detail(f"note: {notice}")
        return loaded

    @property
    def config(self) -> HostConfig:
        return self.loaded.assembled.config

    def server_names(self) -> tuple[str, ...]:
        """Configured servers in order; empty where no configuration can be read."""
        with suppress(ConfigError):
            return tuple(server.name for server in self.config.servers)
        return ()

    @cached_property
    def state_dir(self) -> Path:
        """Where the running host keeps its socket; also without a configuration file."""
        from observant_host import config_files

        around = config_files.Surroundings.of_process()
        if self._given is None:
            with suppress(ConfigError):
                return self._configured_state_dir(around)
            return config_files.default_state_dir(around)
        return self._configured_state_dir(around)

    def _configured_state_dir(self, around: Any) -> Path:
        from observant_host import config_files

        named = self.config.host.state_dir
        return Path(named) if named else config_files.default_state_dir(around)

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
        running = None if standalone else await self.running()
        if running is not None:
            self.screen.say(f"asking the running host ({self.state_dir / 'host.sock'})")
            return await work(running)
        if not may_start:
            raise Unavailable(
                f"no host is running with the state folder {self.state_dir}; `observant-host run` "
                "starts one, --standalone starts copies of the servers just to look"
            )
        async with self.own(only) as own:
            return await work(own)

    async def running(self) -> Source | None:
        """The host that serves from our state folder, or None."""
        raise NotImplementedError

    @asynccontextmanager
    async def own(self, only: Sequence[str]) -> AsyncIterator[Source]:
        """A host of our own, with copies of the servers named (empty: all), stopped afterwards."""
        from observant_host.cli.progress import Progress
        from observant_host.cli.source import OwnHost
        from observant_host.host import Host

        config = patient(self.config, only)
        self.screen.say(f"starting {_copies(len(config.servers))}")
        host = Host(config=config)
        async with Progress(self.screen, lambda: host.servers):
            await host.__aenter__()
        try:
            yield OwnHost(host)
        finally:
            await host.close()

    def examine(self, names: Sequence[str]) -> list[Examination]:
        """A person's look at these servers, one after the other, in processes of their own."""
        raise NotImplementedError


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


def _copies(count: int) -> str:
    return "a copy of one server" if count == 1 else f"copies of {count} servers"
