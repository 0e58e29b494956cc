"""One round of finding out a server's era: act, wait for evidence, step, report.

Everything decided here is decided by the table of decisions/era; this driver owns the clock and
the writing. A `server/discover` is never cancelled: unanswered ones stay open over the rounds of a
life, at most two, and the answer to any of them is evidence.

Source: MCP 2026-07-28 basic/transports/stdio › Backward Compatibility, basic/versioning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from observant_host.decisions.era import (
    Permission,
    Step,
    cause_of,
    direction_of,
    first_phase,
    step,
)
from observant_host.decisions.era_sentences import sentence
from observant_host.decisions.era_table import Do
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
from observant_host.wire.revisions import MODERN, PREFERRED_MODERN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from observant_host.decisions.terms import Trigger
    from observant_host.telemetry.facade import Operation


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What one round found out.

    `life` is the one in use now: after a respawn not the one that was given. `era` is None where
    none was chosen; then `cause` and `detail` say why, and `end_life` that this life must be ended
    before another round. `modern_evidence` is True where the server proved to be modern in this
    round, whatever came of it. `context` is the decision's place in its trace.
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


async def negotiate(
    life: Life,
    *,
    permission: Permission,
    proven: bool,
    trigger: Trigger,
    previous_era: Era,
    respawn: Callable[[], Awaitable[Life]],
    remembered_modern: bool = False,
    parent: TraceContext | None = None,
) -> Round:
    """Negotiate once. Raises nothing but cancellation.

    `proven`: a timeout is an outage (memory, or expect_era = "modern"). `remembered_modern`: the
    memory says modern and only alerts; if legacy is chosen all the same, that is not expected.
    Revisions that may be agreed on are `life.server.era.allow_legacy`. `respawn` gives an opened
    life in a fresh process; it may raise TransportError.
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
    with life.telemetry.operation(fact, parent=parent) as op:
        driver = _Driver(life, respawn=respawn)
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

    def __init__(self, life: Life, *, respawn: Callable[[], Awaitable[Life]]) -> None:
        self.life = life
        self.evidence: list[Evidence] = []
        self._respawn = respawn
        self._probing = Probing(life)
        life.probes.negotiating = True

    def rest(self) -> None:
        """From now on an answer wakes the supervisor, not this round."""
        self.life.probes.negotiating = False

    async def run(self, permission: Permission, *, proven: bool) -> Step:
        """From the first probe to the step that ends the round."""
        probes = self.life.probes
        phase = first_phase(
            permission,
            proven=proven,
            shown_modern=probes.saw_modern,
            initialize_sent=probes.initialize is not None,
        )
        came = await self._probing.discover(PREFERRED_MODERN)
        while True:
            self._keep(came)
            decided = step(phase, came)
            match decided.do:
                case Do.DISCOVER_AGAIN:
                    came = await self._probing.discover(came.chosen or PREFERRED_MODERN, again=True)
                case Do.INITIALIZE:
                    came = await self._probing.initialize()
                case Do.RESPAWN_AND_INITIALIZE:
                    came = await self._initialize_fresh()
                case Do.USE_MODERN | Do.ACCEPT_LEGACY:
                    self._settle(decided)
                    return decided
                case Do.REFUSE | Do.END_LIFE:
                    return decided
            phase = decided.after

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

    def _settle(self, decided: Step) -> None:
        probe, life = self._probing.judged, self.life
        version = decided.evidence.chosen
        if probe is None or version is None or not isinstance(probe.answer, Result):
            raise RuntimeError("an era was chosen without an answer that proves it")
        if decided.do is Do.USE_MODERN:
            _settle_modern(life, probe.answer, version=version)
        else:
            _settle_legacy(life, probe.answer, version=version)


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
    life.notify("notifications/initialized")


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
        cause=cause_of(last.reason, transport=life.transport.kind, proven=shown)
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
    )


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
