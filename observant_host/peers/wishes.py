"""Which resources of one server somebody follows. It outlives the server's lives: each new one is
asked for the same again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions.freshness import touches
from observant_host.errors import InvalidCall
from observant_host.peers.notices import is_coroutine
from observant_host.timing.tasks import Signal, spawn

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    OnUpdated = Callable[[str], object]

MAX_WISHES: Final = 1024
"""Of one server: all of them go into one request."""


class Wishes:
    """`changed` is set whenever the set of followed resources changes. For the loop's thread."""

    def __init__(self, server: str) -> None:
        self.changed = Signal()
        self._server = server
        self._by_uri: dict[str, list[OnUpdated]] = {}
        self._telling: set[asyncio.Task[Any]] = set()

    @property
    def uris(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_uri))

    def add(self, uri: str, on_updated: OnUpdated) -> None:
        """Raises InvalidCall where too many are followed already."""
        if uri not in self._by_uri:
            if len(self._by_uri) >= MAX_WISHES:
                raise InvalidCall(f"{MAX_WISHES} resources of {self._server} are followed already")
            self._by_uri[uri] = []
            self.changed.set()
        self._by_uri[uri].append(on_updated)

    def remove(self, uri: str, on_updated: OnUpdated | None = None) -> None:
        """One callback, or all of this URI; what is not there is no error."""
        left = [one for one in self._by_uri.get(uri, ()) if one != on_updated]
        if on_updated is not None and left:
            self._by_uri[uri] = left
        elif self._by_uri.pop(uri, None) is not None:
            self.changed.set()

    def updated(self, uri: str, failed: Callable[[], None]) -> None:
        """Tell whoever follows this resource, or what it is a part of; `failed` is called for each
        callback that raises."""
        for wished, callbacks in tuple(self._by_uri.items()):
            for on_updated in tuple(callbacks) if touches(uri, wished) else ():
                try:
                    self._run(on_updated(uri), failed)
                except Exception:  # noqa: BLE001 - the embedding program's code, not the reader's
                    failed()

    def _run(self, told: Any, failed: Callable[[], None]) -> None:
        if not is_coroutine(told):
            return
        task = spawn("resource callback", told, on_error=lambda _name, _error: failed())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)
