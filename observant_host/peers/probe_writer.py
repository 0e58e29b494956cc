"""Writes the two requests that find out a server's era.

They go out before there is an era, so each carries its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from observant_host.peers.eras import ModernEra
from observant_host.peers.probes import DISCOVER, INITIALIZE, Probe, Probes
from observant_host.wire import legacy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.peers.outbox import Outbox
    from observant_host.telemetry.facade import TraceContext
    from observant_host.timing.clock import Clock
    from observant_host.wire.envelope import ClientInfo


class ProbeWriter:
    """Of one life. Nothing is raised: what cannot be sent gets no answer. `initial` is declared by
    an `initialize`, once for all that follows."""

    def __init__(
        self,
        probes: Probes,
        outbox: Outbox,
        *,
        client_info: ClientInfo,
        capabilities: Mapping[str, Any],
        initial: Mapping[str, Any],
        clock: Clock,
    ) -> None:
        self._probes = probes
        self._outbox = outbox
        self._client_info = client_info
        self._capabilities = capabilities
        self._initial = initial
        self._clock = clock

    def discover(self, version: str, *, trace: TraceContext | None, propagate: bool) -> Probe:
        """A `server/discover` at this version; `propagate` the trace."""
        asking = ModernEra(version=version, client_info=self._client_info, propagate=propagate)
        probe = self._probes.open(DISCOVER, version, now=self._clock.monotonic())
        frame = asking.request(
            probe.request_id,
            probe.method,
            None,
            capabilities=self._capabilities,
            trace=trace,
            progress_token=None,
        )
        self._outbox.write(
            frame, probe.method, version=version, request_id=probe.request_id, modern=True
        )
        return probe

    def initialize(self, version: str, *, renewal: bool) -> Probe:
        """An `initialize` for this revision; `renewal`: of the session only."""
        now = self._clock.monotonic()
        probe = self._probes.open(INITIALIZE, version, now=now, renewal=renewal)
        frame = legacy.initialize(
            probe.request_id,
            version=version,
            capabilities=self._initial,
            client_info=self._client_info,
        )
        self._outbox.write(frame, probe.method, request_id=probe.request_id)
        return probe
