"""Which resources of one server somebody follows. It outlives the server's lives: each new one is
asked for the same again.

A wish that is not fulfilled is told once for each reason: in the log, in the server's status, and
to whoever made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions.freshness import touches
from observant_host.errors import InvalidCall
from observant_host.peers.notices import is_coroutine
from observant_host.telemetry.vocabulary import FrameDropped, WishUnmet
from observant_host.timing.tasks import Signal, spawn

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from observant_host.telemetry.facade import Telemetry

    OnUpdated = Callable[[str], object]
    OnUnmet = Callable[[str, str], object]

MAX_WISHES: Final = 1024
"""Of one server: all of them go into one request."""


class Wishes:
    """`changed` is set whenever the set of followed resources changes, `turned` whenever the set of
    those that are not fulfilled does. For the loop's thread."""

    def __init__(self, server: str, telemetry: Telemetry) -> None:
        self.changed = Signal()
        self.turned = Signal()
        self.unmet: dict[str, str] = {}
        """Why, by URI."""
        self._server = server
        self._telemetry = telemetry
        self._by_uri: dict[str, list[tuple[OnUpdated, OnUnmet | None]]] = {}
        self._met_before: frozenset[str] = frozenset()
        self._telling: set[asyncio.Task[Any]] = set()

    @property
    def uris(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_uri))

    def add(self, uri: str, on_updated: OnUpdated, on_unmet: OnUnmet | None = None) -> None:
        """Raises InvalidCall where too many are followed already."""
        if uri not in self._by_uri:
            if len(self._by_uri) >= MAX_WISHES:
                raise InvalidCall(f"{MAX_WISHES} resources of {self._server} are followed already")
            self._by_uri[uri] = []
            self.changed.set()
        self._by_uri[uri].append((on_updated, on_unmet))
        if on_unmet is not None and uri in self.unmet:
            self._call(on_unmet, uri, self.unmet[uri])

    def remove(self, uri: str, on_updated: OnUpdated | None = None) -> None:
        """One callback, or all of this URI; what is not there is no error."""
        left = [one for one in self._by_uri.get(uri, ()) if one[0] != on_updated]
        if on_updated is not None and left:
            self._by_uri[uri] = left
        elif self._by_uri.pop(uri, None) is not None:
            self._met_before -= {uri}
            if self.unmet.pop(uri, None) is not None:
                self.turned.set()
            self.changed.set()

    def met(self, uris: Iterable[str]) -> bool:
        """The server tells of these from now on; True if it did of any at some time before."""
        met = self._by_uri.keys() & set(uris)
        before = not self._met_before.isdisjoint(met)
        self._met_before |= met
        for uri in met & self.unmet.keys():
            del self.unmet[uri]
            self.turned.set()
        return before

    def refused(self, uris: Iterable[str], why: str) -> None:
        """The server does not tell of these."""
        for uri in uris:
            if uri not in self._by_uri or self.unmet.get(uri) == why:
                continue
            self.unmet[uri] = why
            self.turned.set()
            self._telemetry.count(WishUnmet(peer=self._server, uri=uri, detail=why))
            for _, on_unmet in tuple(self._by_uri[uri]):
                if on_unmet is not None:
                    self._call(on_unmet, uri, why)

    def updated(self, uri: str) -> None:
        """Tell whoever follows this resource, or what it is a part of."""
        for wished, wishes in tuple(self._by_uri.items()):
            for on_updated, _ in tuple(wishes) if touches(uri, wished) else ():
                self._call(on_updated, uri)

    def note(self) -> str | None:
        """A part of a sentence about what is not fulfilled."""
        if not self.unmet:
            return None
        uri, why = next(iter(self.unmet.items()))
        others = f" and {len(self.unmet) - 1} more" if len(self.unmet) > 1 else ""
        return f"it does not tell of {uri}{others}, which somebody follows: {why}"

    def _call(self, callback: Callable[..., object], *told: str) -> None:
        """It is the embedding program's code, not the reader's: its failure is counted."""
        try:
            self._run(callback(*told))
        except Exception:  # noqa: BLE001 - see above
            self._failed()

    def _run(self, told: Any) -> None:
        if not is_coroutine(told):
            return
        task = spawn("resource callback", told, on_error=lambda _name, _error: self._failed())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _failed(self) -> None:
        self._telemetry.count(FrameDropped(peer=self._server, kind="updated_callback_failed"))
