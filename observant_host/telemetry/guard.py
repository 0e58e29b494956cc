"""A sink that fails waits, is tried again, and says so; it never breaks a call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from observant_host.telemetry.finished import Choosy, Meter, Repetitive

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.telemetry.finished import Finished, Measured, OneOfMany, Sink
    from observant_host.telemetry.vocabulary import Fact

T = TypeVar("T")

FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 60.0


class Guarded:
    """A Sink around another. While it is down, what it is given is skipped and counted.

    changed(name, up, error): called when it goes down and when it is up again.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        changed: Callable[[str, bool, BaseException | None], None] = lambda *_: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = sink.name
        self.skipped = 0
        self._sink = sink
        self._changed = changed
        self._monotonic = monotonic
        self._wait = 0.0
        self._until = 0.0

    @property
    def up(self) -> bool:
        return not self._wait

    def wants(self, kind: type[Fact]) -> bool:
        return self._sink.wants(kind)

    def passes_over(self, kind: type[Fact]) -> bool:
        return isinstance(self._sink, Choosy) and self._sink.passes_over(kind)

    def meter(self, kind: type[Fact]) -> Callable[[Measured], None] | None:
        """The sink's own, guarded as `emit` is."""
        inner = self._sink.meter(kind) if isinstance(self._sink, Meter) else None
        return None if inner is None else self._guarded(inner)

    def alike(self, call: Finished, request: Finished) -> Callable[[OneOfMany], None] | None:
        """The sink's own, guarded as `emit` is."""
        sink = self._sink
        try:
            inner = sink.alike(call, request) if isinstance(sink, Repetitive) else None
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller's work goes on
            self._failed(error)
            return None
        return None if inner is None else self._guarded(inner)

    def emit(self, done: Finished) -> None:
        if self._wait and self._resting():
            return
        try:
            self._sink.emit(done)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller's work goes on
            self._failed(error)
        else:
            if self._wait:
                self._is_back()

    def _guarded(self, inner: Callable[[T], None]) -> Callable[[T], None]:
        def guarded(done: T) -> None:
            if self._wait and self._resting():
                return
            try:
                inner(done)
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller's work goes on
                self._failed(error)
            else:
                if self._wait:
                    self._is_back()

        return guarded

    def _resting(self) -> bool:
        resting = self._monotonic() < self._until
        self.skipped += resting
        return resting

    def _is_back(self) -> None:
        self._wait = 0.0
        self._changed(self.name, True, None)

    def _failed(self, error: Exception) -> None:
        was_up = self.up
        self._wait = min(LONGEST_WAIT_S, self._wait * 2) or FIRST_WAIT_S
        self._until = self._monotonic() + self._wait
        self.skipped += 1
        if was_up:
            self._changed(self.name, False, error)
