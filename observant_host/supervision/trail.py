"""Where one peer's lives stand in traces, so that each says what it follows from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.telemetry.propagation import Link

if TYPE_CHECKING:
    from observant_host.telemetry.propagation import TraceContext


class Trail:
    """One peer's. A start is a child of the restart that asked for it, in one trace."""

    def __init__(self) -> None:
        self._started: TraceContext | None = None
        self._failed_call: TraceContext | None = None
        self.restart: TraceContext | None = None

    def before_start(self) -> tuple[Link, ...]:
        """Links of the next start."""
        return _links(previous_generation=self._started)

    def start(self, context: TraceContext) -> None:
        """A life begins here."""
        self._started, self._failed_call, self.restart = context, None, None

    def call_failed(self, context: TraceContext | None) -> None:
        """A call had been sent and got no answer: it may be what this life dies of."""
        self._failed_call = context

    def before_restart(self, because: TraceContext | None) -> tuple[Link, ...]:
        """Links of a restart; `because` is the decision that ended the life, where one did."""
        return _links(caused_by=because or self._failed_call, previous_generation=self._started)


def _links(**to: TraceContext | None) -> tuple[Link, ...]:
    return tuple(Link(context, kind) for kind, context in to.items() if context is not None)
