"""One round of negotiation, with what people allowed before it and what is remembered after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions.era import Permission
from observant_host.decisions.era_sentences import sentence
from observant_host.decisions.permission import Verdict, permission
from observant_host.decisions.terms import Cause, Direction, Era, Reason, Trigger
from observant_host.peers.negotiation import negotiate
from observant_host.supervision.peer_state import iso
from observant_host.supervision.sightings import late_evidence
from observant_host.telemetry.propagation import Link
from observant_host.telemetry.vocabulary import EraDecide
from observant_host.wire.revisions import HTTP_SSE_REVISION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from observant_host.config import ServerConfig
    from observant_host.peers.life import Life
    from observant_host.peers.negotiation import Round
    from observant_host.supervision.peer_state import PeerRecord
    from observant_host.supervision.surroundings import Surroundings
    from observant_host.telemetry.propagation import TraceContext

_REFUSALS: Final[Mapping[Permission, Reason | None]] = {
    Permission.GRANTED: None,
    Permission.NONE: Reason.ALLOWANCE_EXPIRED,  # it was taken back meanwhile
    Permission.EXPIRED: Reason.ALLOWANCE_EXPIRED,
    Permission.MISMATCH: Reason.ALLOWANCE_MISMATCH,
    Permission.REFUSED: Reason.WAS_MODERN,
}

_ANOTHER_REVISION: Final = (
    "{server} is configured as HTTP+SSE, the transport of {sse}, but only {allowed} is allowed, so"
    ' nothing was sent to it. Add "{sse}" to `allow_legacy` in [servers.{server}], or leave'
    " `transport` out."
)


class Rounds:
    """The rounds of one peer. Holds what spans lives: the last era, and modern evidence."""

    def __init__(self, record: PeerRecord, around: Surroundings) -> None:
        self._record = record
        self._around = around
        self._previous: Era | None = None
        self._last: TraceContext | None = None
        self.verdict = Verdict(permission=Permission.NONE, proven=False)
        self._discover_only = False
        self._next_discover_only = False

    @property
    def _server(self) -> ServerConfig:
        """As it is configured at this moment."""
        return self._record.server

    @property
    def previous(self) -> Era:
        """The era last chosen: in this run, else as remembered."""
        if self._previous is not None:
            return self._previous
        return self._around.memory.last_era(self._server)

    def new_life(self) -> None:
        """A life that follows late modern evidence gets discover only, whatever is allowed."""
        self._discover_only, self._next_discover_only = self._next_discover_only, False

    def judge(self) -> Verdict:
        """What is allowed at this moment."""
        around = self._around
        verdict = permission(
            self._server.era,
            self._server.fingerprint,
            remembered=around.memory.recall(self._server),
            remember_modern=around.remember_modern,
            now_s=around.now_s(),
        )
        self._record.allowed = verdict.permission in (Permission.GRANTED, Permission.REFUSED)
        self._record.allowance_expires_s = verdict.expires
        self.verdict = verdict
        return verdict

    def refusal(self) -> Reason | None:
        """Why `initialize` may not be sent at this moment; None where a person allows it."""
        return _REFUSALS[self.judge().permission]

    def sse_refusal(self) -> Reason | None:
        """Why a server that is configured as HTTP+SSE may not be asked at all."""
        if self._server.transport != "sse":
            return None
        refusal = self.refusal()
        old = HTTP_SSE_REVISION in self.verdict.revisions
        return refusal if refusal is not None or old else Reason.LEGACY_UNSUPPORTED_REVISION

    def why_not_sse(self, reason: Reason) -> str:
        """The sentence for a person on such a refusal."""
        name, era = self._server.name, self._server.era
        if reason is Reason.LEGACY_UNSUPPORTED_REVISION:
            allowed = ", ".join(era.allow_legacy)
            return _ANOTHER_REVISION.format(server=name, allowed=allowed, sse=HTTP_SSE_REVISION)
        return sentence(reason, server=name, allowed=era.allow_legacy, expires=era.legacy_expires)

    async def run(
        self,
        life: Life,
        trigger: Trigger,
        *,
        respawn: Callable[[], Awaitable[Life]],
        open_sse: Callable[[], Awaitable[Life]],
    ) -> Round:
        """Negotiate once; remember, record and return what came of it."""
        verdict = self.judge()
        granted = verdict.permission is Permission.GRANTED
        found = await negotiate(
            life,
            permission=Permission.REFUSED
            if granted and self._discover_only
            else verdict.permission,
            proven=verdict.proven or self._discover_only,
            trigger=trigger,
            previous_era=self.previous,
            respawn=respawn,
            open_sse=open_sse,
            remembered_modern=verdict.unexpected,
            links=self._before(),
        )
        self._report(found)
        self._remember(found)
        return found

    def _remember(self, found: Round) -> None:
        memory = self._around.memory
        if found.modern_evidence:
            self._discover_only = True
            memory.proved_modern(
                self._server, version=found.era.version if found.era is not None else None
            )
        if found.era is not None:
            self._previous = found.selected
            self._record.era_expected = found.expected
            memory.chose(
                self._server,
                found.selected,
                version=found.era.version,
                downgrade=found.direction is Direction.DOWNGRADE,
            )
        elif found.cause is Cause.POLICY:
            memory.refused(self._server)

    def _report(self, found: Round) -> None:
        record = self._record
        record.evidence = tuple(evidence.to_dict() for evidence in found.evidence)
        self._decided_in(found.context)
        self._decided(
            {
                "direction": found.direction,
                "expected": found.expected,
                "to": found.selected,
                "version": found.era.version if found.era is not None else None,
                "reason": found.reason,
                "evidence": record.evidence,
            }
        )

    def proved_modern(self, life: Life | None) -> None:
        """Late modern evidence: remembered, recorded, and the next life gets discover only.

        `life` holds the evidence; None where its round has recorded it.
        """
        self._next_discover_only = True
        self._around.memory.proved_modern(self._server)
        if life is not None:
            self.conclude(
                Reason.LATE_MODERN_EVIDENCE,
                trigger=Trigger.LATE_EVIDENCE,
                detail="it spoke modern after initialize was written",
                evidence=late_evidence(life, self._around.masker),
            )

    def conclude(
        self,
        reason: Reason,
        *,
        trigger: Trigger,
        detail: str,
        evidence: tuple[Mapping[str, object], ...] = (),
    ) -> None:
        """Record a decision that no round made: no start, a bad configuration, late evidence."""
        record = self._record
        fact = EraDecide(
            peer=self._server.name,
            generation=record.generation,
            trigger=trigger,
            previous=self.previous,
            reason=reason,
            detail=detail,
            evidence=tuple(dict(one) for one in evidence),
        )
        with self._around.telemetry.operation(fact, links=self._before()) as operation:
            operation.end_as("unavailable", reason)
        record.evidence = evidence
        self._decided_in(operation.context)
        self._decided(
            {
                "direction": Direction.NONE,
                "expected": True,
                "to": Era.UNKNOWN,
                "version": None,
                "reason": reason,
                "evidence": evidence,
            }
        )

    def _before(self) -> tuple[Link, ...]:
        last = self._last
        return (Link(last, "previous_decision"),) if last is not None else ()

    def _decided_in(self, context: TraceContext) -> None:
        self._last = self._record.because = context
        self._record.trace_id = context.trace_hex

    def _decided(self, decision: dict[str, Any]) -> None:
        record = self._record
        self._around.decided(
            self._server.name,
            {
                "time": iso(self._around.clock.wall_ns()),
                "from": self.previous,
                "generation": record.generation,
                "trace_id": record.trace_id,
                **decision,
            },
        )
