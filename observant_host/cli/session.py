"""What all asking commands share: reading the configuration, finding the running host, or starting
copies of what is needed, and ending cleanly on Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from observant_host.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from observant_host.cli.output import Screen
    from observant_host.config import HostConfig
    from observant_host.config_files import Loaded

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
