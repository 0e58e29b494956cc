"""What one scrape reads of all peers, taken at one moment."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from observant_host.decisions.terms import Era
from observant_host.supervision.peer_state import SERVING
from observant_host.telemetry.vocabulary import PeerSnapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.decisions.catalogue import Catalogue
    from observant_host.supervision.figures import Figures
    from observant_host.supervision.fleet import Fleet
    from observant_host.supervision.memory import HostMemory
    from observant_host.supervision.sampling import Life
    from observant_host.supervision.supervisor import PeerSupervisor


def snapshots(
    fleet: Fleet,
    *,
    memory: HostMemory,
    figures: Mapping[Life, Figures],
    catalogue: Catalogue,
    now_s: float,
) -> list[PeerSnapshot]:
    """One of each peer. `figures` are of process groups; `now_s` is since the epoch.

    A peer that takes calls was last ready now: what memory keeps is the moment at which it left.
    """
    collisions = Counter(
        server
        for collision in catalogue.collisions
        for server in {collision.owner, *(server for server, _ in collision.others)}
    )
    return [
        _snapshot(
            peer,
            memory=memory,
            figures=figures,
            collisions=collisions[peer.server.name],
            now_s=now_s,
        )
        for peer in fleet
    ]


def _without_group(peer: PeerSupervisor) -> int | None:
    """None where there is none to count: a server behind a URL, or figures not read yet."""
    return 0 if peer.server.transport == "stdio" and peer.record.pid is None else None


def _snapshot(
    peer: PeerSupervisor,
    *,
    memory: HostMemory,
    figures: Mapping[Life, Figures],
    collisions: int,
    now_s: float,
) -> PeerSnapshot:
    record, moments = peer.record, memory.moments(peer.server)
    running = record.pid is not None
    group = figures.get((peer.server.name, record.generation)) if running else None
    listing = record.listing
    return PeerSnapshot(
        peer=peer.server.name,
        state=record.status.state,
        cause=record.status.cause,
        era=record.era,
        era_expected=record.era_expected,
        expected=record.expected,
        required=peer.server.required,
        last_ready_s=now_s if record.status.state in SERVING else moments.last_ready,
        last_downgrade_s=moments.last_downgrade,
        last_refused_s=moments.last_refused,
        allowance_expires_s=record.allowance_expires_s,
        tools=len(listing.tools) if listing is not None else None,
        collisions=collisions if listing is not None else None,
        refresh_failing=record.listing_layer == "failing"
        if record.era is not Era.UNKNOWN
        else None,
        subscription_up=None if record.listening.layer == "off" else record.listening.layer == "ok",
        inflight=peer.peer.gate.in_flight,
        queued=peer.peer.gate.queued,
        processes=group.processes if group is not None else _without_group(peer),
        resident_bytes=group.resident_bytes if group is not None else None,
        cpu_seconds=group.cpu_seconds if group is not None else None,
        open_fds=group.open_fds if group is not None else None,
    )
