"""The transport lives of one peer, one after another; at most one is open.

The era goes with the life: it is dropped, and that is recorded, before anything of the next life
is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import anyio
import msgspec

from observant_host.config import HttpServer
from observant_host.decisions.terms import Era
from observant_host.errors import HttpFailure, TransportError
from observant_host.peers.life import Life
from observant_host.supervision.signals import LifeSignals
from observant_host.telemetry.vocabulary import EraDropped
from observant_host.wire import revisions

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.config import ServerConfig
    from observant_host.decisions.terms import Reason
    from observant_host.peers.peer import Peer
    from observant_host.supervision.peer_state import PeerRecord
    from observant_host.supervision.surroundings import Surroundings
    from observant_host.transports.base import End


def _never() -> Reason | None:
    """A person's own look at a server: allowed as long as it lasts."""
    return None


class Lives:
    """Only the peer's owner task opens and ends lives here.

    `refused` says why `initialize` may not be sent at this moment, None where it may.
    """

    def __init__(
        self,
        record: PeerRecord,
        peer: Peer,
        around: Surroundings,
        *,
        refused: Callable[[], Reason | None] = _never,
    ) -> None:
        self._record = record
        self._peer = peer
        self._around = around
        self._refused = refused
        self._unused = False
        self.signals = LifeSignals(refused, around.clock.monotonic)

    @property
    def life(self) -> Life:
        life = self._record.life
        if life is None:
            raise RuntimeError("no life was begun yet")
        return life

    @property
    def next_generation(self) -> int:
        """A life over HTTP counts once a connection was made."""
        life, generation = self._record.life, self._record.generation
        unused = self._unused if life is None or life.end is not None else not life.inbox.reached
        return generation if unused else generation + 1

    async def open(self) -> Life:
        """A fresh life; the one before it is ended first. Raises TransportError.

        Over HTTP it is not connected yet: its first request does that.
        """
        return await self._open("http")

    async def open_sse(self) -> Life:
        """A fresh life on the same URL's HTTP+SSE stream. Raises TransportError."""
        return await self._open("sse")

    async def _open(self, over: Literal["http", "sse"]) -> Life:
        await self.end("a fresh one begins")
        record, around = self._record, self._around
        server = with_revisions(record.server)
        record.generation = self.next_generation
        self._unused = False
        signals = self.signals = LifeSignals(
            self._refused, around.clock.monotonic, held=lambda: record.held
        )
        life = Life(
            server,
            generation=record.generation,
            transport=around.transport(_over(server, over)),
            telemetry=around.telemetry,
            clock=around.clock,
            client_info=around.client_info,
            input_handlers=around.handlers,
            listener=signals,
            masker=around.masker,
        )
        record.life = life
        try:
            await life.open()
        except TransportError as failed:
            record.life = None  # it left nothing behind
            self._unused = isinstance(failed, HttpFailure) and not failed.sent
            raise
        return life

    async def end(self, why: str) -> End | None:
        """End the present life, if there is one, within its transport's bound; drop its era."""
        life = self._record.life
        if life is None:
            return None
        self._peer.detach(why)
        with anyio.CancelScope(shield=True):
            end = await life.close()
        self._unused = not life.inbox.reached
        self.drop(why)
        return end

    def drop(self, why: str) -> None:
        """Forget the era of the life that is over."""
        record = self._record
        if record.era is Era.UNKNOWN:
            return
        self._around.telemetry.count(
            EraDropped(
                peer=record.server.name, generation=record.generation, era=record.era, why=why
            )
        )
        record.era, record.version = Era.UNKNOWN, None


def _over(server: ServerConfig, over: Literal["http", "sse"]) -> ServerConfig:
    """Which of its two transports a URL is reached by now; a command stays as it is."""
    if not isinstance(server.launch, HttpServer):
        return server
    launch = msgspec.structs.replace(server.launch, transport=over)
    return msgspec.structs.replace(server, launch=launch)


def with_revisions(server: ServerConfig) -> ServerConfig:
    """Where the file names no revisions, every one that we support: whether `initialize` may be
    sent at all is the round's permission, which also comes from `allow NAME`."""
    revisions_allowed = server.era.allow_legacy or revisions.LEGACY
    era = msgspec.structs.replace(server.era, allow_legacy=revisions_allowed)
    return msgspec.structs.replace(server, era=era)
