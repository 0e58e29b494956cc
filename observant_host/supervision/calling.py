"""One supervised peer as its callers see it: routable or not, and one call at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions import retry_safety
from observant_host.decisions.budget import RETRIES, Budget
from observant_host.decisions.retry_safety import Denied, RetryReason
from observant_host.decisions.suspicion import Health
from observant_host.errors import CallError, RpcError
from observant_host.peers.call import Call
from observant_host.peers.ordinary import Ordinary
from observant_host.peers.peer import Peer
from observant_host.supervision.peer_state import PeerRecord
from observant_host.supervision.trail import Trail
from observant_host.telemetry.vocabulary import RetryDenied, RetryScheduled
from observant_host.wire.revisions import HEADER_MISMATCH

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from msgspec import Raw

    from observant_host.config import ServerConfig
    from observant_host.decisions.peer_states import PeerStatus
    from observant_host.peers.ordinary import Kept
    from observant_host.peers.peer import CallReply, RequestOptions
    from observant_host.supervision.surroundings import Surroundings
    from observant_host.telemetry.vocabulary import RoutedCall

WEDGED: Final = Health.WEDGED
"""By itself, since a call looks at it: a member of an enumeration is found the long way."""


class Calling(ABC):
    """The calling half of a supervisor; serves the router as a RoutedPeer."""

    def __init__(self, server: ServerConfig, around: Surroundings) -> None:
        self.server = server
        self.record = PeerRecord(server, around)
        self.peer = Peer(
            server,
            telemetry=around.telemetry,
            clock=around.clock,
            handlers=around.handlers,
            cache=around.cache,
            log_level=around.log_level,
            on_log=around.on_log,
        )
        self.retries = Budget(RETRIES)
        self._around = around
        self._trail = Trail()

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether it will never be routable again."""

    @property
    def status(self) -> PeerStatus:
        return self.record.status

    @property
    def routable(self) -> bool:
        """False from the very end of its life on, before anybody could take note of that."""
        life = self.peer.life
        return life is not None and not life.inbox.end.raised

    def ordinary(self, kept: Kept, call: RoutedCall) -> Ordinary | None:
        """What sends an ordinary call of this tool, where nothing stands in its way now but that
        there may be no room."""
        peer, record, known = self.peer, self.record, kept.ordinary
        life = peer.life
        if life is None or life.inbox.end.raised:
            return None
        if known is None or known.life is not life or known.server is not peer.server:
            if kept.once:
                kept.once = False
                return None
            known = kept.ordinary = Ordinary(
                peer,
                life,
                call,
                handlers=kept.handlers,
                signals=record.vitals.signals,
                record=record,
            )
        if (
            not known.possible
            or peer.log_level is not None
            or peer.tasks.enabled
            or record.vitals.suspicion.health is WEDGED
        ):
            return None
        return known

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | Raw | None,
        **options: Unpack[RequestOptions],
    ) -> CallReply:
        """As `Peer.call`; remembers the outcome for the status.

        A tool call that is refused for its headers is sent once more, after the list of tools,
        which says which arguments they mirror, was read again.

        Source: MCP 2026-07-28 basic/transports/streamable-http › Custom Headers.
        """
        vitals, first = self.record.vitals, options.get("first")
        ticket = vitals.admit() if first is None else first.ticket
        try:
            try:
                # as Peer.call: each further layer would pack and unpack the options once more
                reply = await Call(self.peer, method, **options).made(params)
            except RpcError as refused:
                if not await self._read_anew(refused, method, options):
                    raise
                options["attempt"], options["first"] = options.get("attempt", 1) + 1, None
                again = await self.peer.call(method, params, **options)
                reply = msgspec.structs.replace(again, attempts=again.attempts + 1)
        except BaseException as failed:
            vitals.ended(ticket, failed)
            if isinstance(failed, CallError):
                self._failed(failed)
            raise
        vitals.ended(ticket)
        self.record.last_call = "tool_error" if reply.is_error else "ok"
        return reply

    def _failed(self, failed: CallError) -> None:
        self.record.last_call = failed.outcome
        if failed.delivery == "sent_no_reply":
            self._trail.call_failed(self._around.telemetry.current())

    async def _read_anew(self, refused: RpcError, method: str, options: RequestOptions) -> bool:
        """Whether it may be sent again, its server's list of tools being as new as can be."""
        life = self.peer.life
        mirrors = life is not None and life.headers is not None
        its_headers = refused.code == HEADER_MISMATCH and not refused.begun
        if not its_headers or method != "tools/call" or not mirrors:
            return False
        telemetry, clock, name = self._around.telemetry, self._around.clock, self.server.name
        began, attempt = clock.monotonic(), options.get("attempt", 1)
        until = self._until(options, began)
        affordable = self.retries.take(began)
        listed = affordable and await self.record.listed_again(until, clock=clock)
        verdict = retry_safety.decide(
            RetryReason.HEADER_MISMATCH,
            policy=self.server.retry_calls,
            harmless_twice=False,
            attempts=attempt,
            remaining_s=until - clock.monotonic(),
            routable=listed,
            affordable=affordable,
        )
        if isinstance(verdict, Denied):
            telemetry.count(RetryDenied(peer=name, reason=verdict.reason))
            return False
        waited_ms = (clock.monotonic() - began) * 1e3
        telemetry.count(
            RetryScheduled(
                peer=name, reason=verdict.reason, attempt=attempt + 1, delay_ms=waited_ms
            )
        )
        return True

    def _until(self, options: RequestOptions, now: float) -> float:
        """When the call must be over: by its caller's deadline, else by its server's timeout."""
        expires, began = options.get("expires"), options.get("began")
        if expires is not None:
            return expires
        return (now if began is None else began) + self.server.timing.call_timeout_s
