"""Requests whose time is over: each fails, and is taken back where that is still possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.errors import CallTimeout
from observant_host.peers.open_call import OpenCall
from observant_host.telemetry.vocabulary import DeadlineExpired

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.errors import Delivery
    from observant_host.peers.errand import Errand
    from observant_host.peers.pending import Entry, Pending
    from observant_host.peers.probes import Probe
    from observant_host.telemetry.facade import Telemetry


class Overdue:
    """Of one life. `take_back(id, method, call)` withdraws what has not left, else tells the
    server, and says which of the two it was. `connects`: what has not left waits for a connection.
    """

    def __init__(
        self,
        server: str,
        pending: Pending[OpenCall | Probe],
        *,
        connects: bool,
        telemetry: Telemetry,
        take_back: Callable[[int, str, OpenCall], Delivery],
    ) -> None:
        self._server = server
        self._pending = pending
        self._connects = connects
        self._telemetry = telemetry
        self._take_back = take_back

    def refusal(self, errand: Errand, *, now: float) -> CallTimeout:
        """The error of what is not sent at all: its time was over before it began."""
        late_s = now - errand.expires
        scope = errand.scope_at(now)
        self._telemetry.count(
            DeadlineExpired(
                peer=self._server,
                scope=scope,
                budget_ms=0.0,
                elapsed_ms=late_s * 1000,
                method=errand.method,
            ),
            parent=errand.parent,
        )
        return CallTimeout(
            f"the time for {errand.method} was over before it could be sent to {self._server}",
            scope=scope,
            delivery="not_sent",
            fault="host",
        )

    def fail(self, now: float) -> float | None:
        """Fail what is due at `now`; returns when the next is, None where nothing is open."""
        for entry in self._pending.due(now):
            call = entry.waiter
            if isinstance(call, OpenCall):
                self._fail(entry, call, now=now)
        return self._pending.earliest()

    def _fail(self, entry: Entry[OpenCall | Probe], call: OpenCall, *, now: float) -> None:
        delivery = self._take_back(entry.id, entry.method, call)
        waited = self._connects and delivery == "not_sent"
        scope = "connect" if waited else call.errand.scope_at(now)
        budget_s = entry.expires - call.began
        self._telemetry.count(
            DeadlineExpired(
                peer=self._server,
                scope=scope,
                budget_ms=budget_s * 1000,
                elapsed_ms=(now - call.began) * 1000,
                method=entry.method,
            ),
            parent=call.context,
        )
        call.fail(
            CallTimeout(
                f"{self._server} could not be connected within {budget_s:.3g} s"
                if waited
                else f"{self._server} did not answer {entry.method} within {budget_s:.3g} s",
                scope=scope,
                delivery=delivery,
                fault="peer",
            )
        )
