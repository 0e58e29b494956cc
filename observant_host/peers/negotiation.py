"""One round of finding out a server's era: act, wait for evidence, step, report.

Everything decided here is decided by the table of decisions/era; this driver owns the clock and
the writing. A `server/discover` is never cancelled: unanswered ones stay open over the rounds of a
life, at most two, and the answer to any of them is evidence.

Source: MCP 2026-07-28 basic/transports/stdio › Backward Compatibility, basic/versioning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from observant_host.config import HttpServer
from observant_host.decisions.era import (
    Permission,
    Step,
    cause_of,
    direction_of,
    first_phase,
    step,
)
from observant_host.decisions.era_sentences import sentence
from observant_host.decisions.era_table import Do, Phase
from observant_host.decisions.evidence import Evidence
from observant_host.decisions.terms import Cause, Direction, Era, Reason
from observant_host.errors import TransportError
from observant_host.peers.eras import Era as SettledEra
from observant_host.peers.eras import LegacyEra, ModernEra
from observant_host.peers.life import Life
from observant_host.peers.probing import Probing
from observant_host.telemetry.facade import TraceContext
from observant_host.telemetry.vocabulary import EraDecide
from observant_host.wire.jsonrpc import Result
from observant_host.wire.messages import parse_discover, parse_initialize
from observant_host.wire.revisions import HTTP_SSE_REVISION, MODERN, PREFERRED_MODERN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from observant_host.decisions.terms import Trigger
    from observant_host.telemetry.facade import Link, Operation


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What one round found out.

    `life` is the one in use now: after a respawn not the one that was given. `era` is None where
    none was chosen; then `cause` and `detail` say why, and `end_life` that this life must be ended
    before another round. `modern_evidence` is True where the server proved to be modern in this
    round, whatever came of it. `retry_after_s`: the server asked not to be asked again before.
    `context` is the decision's place in its trace.
    """

    life: Life
    era: SettledEra | None
    selected: Era
    reason: Reason
    cause: Cause | None
    direction: Direction
    expected: bool
    detail: str
    evidence: tuple[Evidence, ...]
    end_life: bool
    modern_evidence: bool
    context: TraceContext
    retry_after_s: float | None = None


async def negotiate(
    life: Life,
    *,
    permission: Permission,
    proven: bool,
    trigger: Trigger,
    previous_era: Era,
    respawn: Callable[[], Awaitable[Life]],
    open_sse: Callable[[], Awaitable[Life]] | None = None,
    remembered_modern: bool = False,
    parent: TraceContext | None = None,
    links: Sequence[Link] = (),
) -> Round:
    """Negotiate once. Raises nothing but cancellation.

    `proven`: a timeout is an outage (memory, or expect_era = "modern"). `remembered_modern`: the
    memory says modern and only alerts; if legacy is chosen all the same, that is not expected.
    Revisions that may be agreed on are `life.server.era.allow_legacy`. `respawn` gives an opened
    life in a fresh process; it may raise TransportError. `open_sse` gives an opened life on
    HTTP+SSE in the place of this one; it may raise HttpFailure. Without it that is not tried.
    """
    fact = EraDecide(
        peer=life.server.name,
        generation=life.generation,
        trigger=trigger,
        previous=previous_era,
        candidates=(*MODERN, *life.server.era.allow_legacy)
        if permission is Permission.GRANTED
        else MODERN,
    )
    with life.telemetry.operation(fact, parent=parent, links=links) as op:
        driver = _Driver(life, respawn=respawn, open_sse=open_sse)
        try:
            last = await driver.run(permission, proven=proven)
        finally:
            driver.rest()
        found = _round(
            driver,
            last,
            proven=proven,
            previous=previous_era,
            remembered_modern=remembered_modern,
            context=op.context,
        )
        _report(op, found)
        return found


class _Driver:
    """Does what the table says. `life` is the one in use; `evidence` all that came, in order."""

    def __init__(
        self,
        life: Life,
        *,
        respawn: Callable[[], Awaitable[Life]],
        open_sse: Callable[[], Awaitable[Life]] | None,
    ) -> None:
        self.life = life
        self.evidence: list[Evidence] = []
        self._respawn = respawn
        self._open_sse = open_sse
        self._transport = life.transport.kind
        self._probing = Probing(life)
        life.probes.negotiating = True

    @property
    def retry_after_s(self) -> float | None:
        """How long the server asked to be left alone, in its last answer."""
        return self._probing.retry_after_s

    def rest(self) -> None:
        """From now on an answer wakes the supervisor, not this round."""
        self.life.probes.negotiating = False

    async def run(self, permission: Permission, *, proven: bool) -> Step:
        """From the first probe to the step that ends the round."""
        phase = self._first_phase(permission, proven=proven)
        if phase is Phase.OPENING_SSE:
            came = await self._get_sse()
        else:
            came = await self._probing.discover(PREFERRED_MODERN)
        while True:
            self._keep(came)
            decided = step(phase, came, transport=self._transport)
            match decided.do:
                case Do.DISCOVER_AGAIN:
                    came = await self._probing.discover(came.chosen or PREFERRED_MODERN, again=True)
                case Do.INITIALIZE:
                    came = await self._probing.initialize()
                case Do.RESPAWN_AND_INITIALIZE:
                    came = await self._initialize_fresh()
                case Do.TRY_SSE:
                    came = await self._get_sse()
                case Do.USE_MODERN | Do.ACCEPT_LEGACY:
                    await self._settle(decided)
                    return decided
                case Do.REFUSE | Do.END_LIFE:
                    return decided
            phase = decided.after

    def _first_phase(self, permission: Permission, *, proven: bool) -> Phase:
        life = self.life
        sse = self._open_sse is not None and HTTP_SSE_REVISION in life.server.era.allow_legacy
        return first_phase(
            permission,
            proven=proven,
            shown_modern=life.probes.saw_modern,
            initialize_sent=life.probes.initialize is not None,
            transport="sse" if life.server.transport == "sse" else self._transport,
            sse_allowed=sse and choice_of(life) != "http",
        )

    def _keep(self, came: Evidence) -> None:
        self.evidence.append(came)
        if came.proves_modern:
            self.life.probes.saw_modern = True

    async def _initialize_fresh(self) -> Evidence:
        """The server ends when asked to discover: a fresh process is asked to initialize first."""
        self.rest()
        try:
            self.life = await self._respawn()
        except TransportError as error:
            return self._probing.not_started(error)
        self.life.probes.negotiating = True
        self._probing = Probing(self.life)
        return await self._probing.initialize(fresh=True)

    async def _get_sse(self) -> Evidence:
        """One GET of the URL for HTTP+SSE: with an endpoint, its stream is the life from then on.

        It and the `initialize` on it share the time that the first `initialize` began.
        """
        before = self._probing
        if self._open_sse is None:
            raise RuntimeError("HTTP+SSE was to be tried where nobody can open it")
        self.rest()
        opened = await before.get_sse(self._open_sse)
        if isinstance(opened, Life):
            self.life = opened
            self.life.probes.negotiating = True
            self._probing = Probing(opened, legacy_until=before.legacy_until)
            return self._probing.sse_opened(since=before.sse_asked_at)
        return opened

    async def _settle(self, decided: Step) -> None:
        probe, life = self._probing.judged, self.life
        version = decided.evidence.chosen
        if probe is None or version is None or not isinstance(probe.answer, Result):
            raise RuntimeError("an era was chosen without an answer that proves it")
        if decided.do is Do.USE_MODERN:
            _settle_modern(life, probe.answer, version=version)
        else:
            _settle_legacy(life, probe.answer, version=version)
            await life.say_initialized()


def _settle_modern(life: Life, answer: Result, *, version: str) -> None:
    found = parse_discover(answer.result)
    if isinstance(found, str):
        raise TypeError(found)
    life.settle(
        ModernEra(
            version=version,
            client_info=life.client_info,
            propagate=life.server.propagate != "none",
        ),
        server_info=found.server_info,
        capabilities=found.capabilities,
        instructions=found.instructions,
    )


def _settle_legacy(life: Life, answer: Result, *, version: str) -> None:
    found = parse_initialize(answer.result)
    if isinstance(found, str):
        raise TypeError(found)
    life.settle(
        LegacyEra(version=version),
        server_info=found.server_info,
        capabilities=found.capabilities,
        instructions=found.instructions,
    )


def _round(
    driver: _Driver,
    last: Step,
    *,
    proven: bool,
    previous: Era,
    remembered_modern: bool,
    context: TraceContext,
) -> Round:
    life = driver.life
    selected = life.era.name if life.era is not None else Era.UNKNOWN
    shown = proven or life.probes.saw_modern
    return Round(
        life=life,
        era=life.era,
        selected=selected,
        reason=last.reason,
        cause=cause_of(
            last.reason,
            transport=life.transport.kind,
            proven=shown,
            kind=last.evidence.kind,
        )
        if life.era is None
        else None,
        direction=direction_of(previous, selected),
        expected=_expected(life, selected, remembered_modern=remembered_modern),
        detail=sentence(
            last.reason,
            server=life.server.name,
            evidence=driver.evidence,
            allowed=life.server.era.allow_legacy,
            expires=life.server.era.legacy_expires,
            proven=shown,
            expect_modern=life.server.era.expect_era == "modern",
        ),
        evidence=tuple(driver.evidence),
        end_life=last.do is Do.END_LIFE,
        modern_evidence=any(one.proves_modern for one in driver.evidence),
        context=context,
        retry_after_s=driver.retry_after_s,
    )


def choice_of(life: Life) -> str:
    """The transport that the configuration chose for a URL; "auto" where it is none."""
    launch = life.server.launch
    return launch.transport if isinstance(launch, HttpServer) else "auto"


def _expected(life: Life, selected: Era, *, remembered_modern: bool) -> bool:
    """False where an era was chosen against what a person expects or the memory holds."""
    wish = life.server.era.expect_era
    match selected:
        case Era.LEGACY:
            return wish != "modern" and not remembered_modern
        case Era.MODERN:
            return wish != "legacy"
        case Era.UNKNOWN:
            return True


def _report(op: Operation, found: Round) -> None:
    info = found.life.server_info or {}
    supported = next((one.supported for one in reversed(found.evidence) if one.supported), ())
    op.note(
        generation=found.life.generation,
        selected=found.selected,
        direction=found.direction,
        reason=found.reason,
        expected=found.expected,
        version=found.era.version if found.era is not None else None,
        supported=supported,
        server_name=_shown(info.get("name")),
        server_version=_shown(info.get("version")),
        detail=found.detail,
        evidence=tuple(one.to_dict() for one in found.evidence),
    )
    if found.era is None:
        op.end_as("unavailable", found.reason)


def _shown(value: object) -> str | None:
    """A server's own words about itself, shortened: they are for display only."""
    return value[:128] if isinstance(value, str) else None
