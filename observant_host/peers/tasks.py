"""The tasks of one peer that somebody here waits for, or gave up: both bounded."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.timing.tasks import spawn
from observant_host.wire.tasks import EXTENSION

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Iterator

    from observant_host.config import ServerConfig
    from observant_host.peers.input_handlers import InputHandlers

MAX_FOLLOWED: Final = 256
"""Tasks of one server at once; beyond them it is not told that we know tasks, and answers plainly.
"""


class Tasks:
    """Of one peer. `enabled`: its entry names the extension; `wanted`: and there is room for one
    more."""

    def __init__(self, server: ServerConfig) -> None:
        self._server = server.name
        self.enabled = EXTENSION in server.extensions
        self._following = 0
        self._withdrawing: set[asyncio.Task[Any]] = set()

    @property
    def wanted(self) -> bool:
        return self.enabled and self._following < MAX_FOLLOWED

    @contextmanager
    def followed(self) -> Iterator[None]:
        """While one task is waited for."""
        self._following += 1
        try:
            yield
        finally:
            self._following -= 1

    def declared(self, handlers: InputHandlers) -> InputHandlers:
        """The same handlers, with the extension beside what they declare."""
        if EXTENSION in handlers.extensions:
            return handlers
        return msgspec.structs.replace(handlers, extensions=(*handlers.extensions, EXTENSION))

    def withdraw(self, cancel: Coroutine[Any, Any, None]) -> None:
        """Run what tells the server that nobody waits any more; whoever waited is gone."""
        task = spawn(f"{self._server} tasks/cancel", cancel, on_error=lambda *_: None)
        self._withdrawing.add(task)
        task.add_done_callback(self._withdrawing.discard)
