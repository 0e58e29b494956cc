"""A router over scripted peers, and the errors that a peer may raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from observant_host.errors import (
    RateLimited,
    Unavailable,
)
from observant_host.routing.catalogue_store import CatalogueStore
from observant_host.routing.router import Router
from observant_host.telemetry.setup import capturing
from observant_host.telemetry.vocabulary import (
    RoutedCall,
)
from tests.decisions.catalogues import up
from tests.routing.peers import Lookup, ScriptedPeer
from tests.support.clock import ManualClock

if TYPE_CHECKING:
    from observant_host.telemetry.finished import Finished


class Bench:
    """A router over scripted peers, and everything it told."""

    def __init__(self, *peers: ScriptedPeer, views: Any = None, granted: Any = None) -> None:
        telemetry, self.told = capturing()
        self.clock = ManualClock()
        self.peers = Lookup(*peers)
        self.store = CatalogueStore(
            policy="prefix",
            rename_grace_s=300,
            telemetry=telemetry,
            clock=self.clock,
            granted=granted,
        )
        self.store.publish(
            views if views is not None else [up(name, "search") for name in self.peers]
        )
        self.told.clear()
        self.router = Router(self.store, self.peers, telemetry=telemetry, clock=self.clock)

    def routed(self) -> Finished:
        (done,) = [d for d in self.told if isinstance(d.fact, RoutedCall)]
        return done

    def facts(self, kind: type) -> list[Any]:
        return [d.fact for d in self.told if isinstance(d.fact, kind)]


def lost(delivery: Any = "not_sent", fault: Any = "peer") -> Unavailable:
    return Unavailable("the life ended", delivery=delivery, fault=fault)


def limited(retry_after_s: float | None = 3.0, delivery: Any = "replied") -> RateLimited:
    return RateLimited("it is busy", retry_after_s=retry_after_s, delivery=delivery)
