"""A person's look at one server: the same table, one round, a process of its own.

Permission is granted for this one round by the person who asks, so that an old server can be
recognised before anybody writes an allowance. It is never used to serve, and it is withheld from
a server that is remembered as modern.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.config.servers import for_a_look
from observant_host.decisions.era import Permission
from observant_host.decisions.peer_states import PeerStatus
from observant_host.decisions.permission import DEFAULT_ALLOWANCE
from observant_host.decisions.terms import Cause, Era, PeerState, Reason, Trigger
from observant_host.errors import TransportError, Unavailable
from observant_host.peers.discovery import list_everything
from observant_host.peers.negotiation import negotiate
from observant_host.peers.pages import ListBounds
from observant_host.peers.peer import Peer
from observant_host.supervision.lives import Lives
from observant_host.supervision.peer_state import PeerRecord, ServerView
from observant_host.supervision.sightings import spawn_evidence
from observant_host.telemetry.vocabulary import OperatorAct
from observant_host.wire.revisions import HTTP_SSE_REVISION

if TYPE_CHECKING:
    from observant_host.config import ServerConfig
    from observant_host.peers.negotiation import Round
    from observant_host.supervision.surroundings import Surroundings

VERB: Final = "examine"


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """What to write into the configuration so that this server is served as it is.

    `keys` are those of a `[servers.NAME]` table, in order: allow_legacy, legacy_reason,
    legacy_expires (ISO date), legacy_fingerprint.
    """

    server: str
    revision: str
    keys: dict[str, Any]


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """`view` is the server's status object after the round; `legacy_revision` is set where the
    server proved legacy. `elapsed_ms` is the whole of it, start and lists included. `sentence` is
    for a person."""

    server: str
    view: ServerView
    legacy_revision: str | None
    fingerprint: str
    sentence: str
    elapsed_ms: float
    suggestion: Suggestion | None = None


async def examine(
    server: ServerConfig, around: Surroundings, *, principal: str, reason: str = ""
) -> Examination:
    """One round and one list, in a process that is ended before this returns.

    Raises nothing for what the server does; a server that cannot be started is an outcome too.
    """
    server = for_a_look(server)
    quiet = replace(around, changed=_nothing, decided=_nothing)
    record = PeerRecord(server, quiet)
    lives = Lives(record, Peer(server, telemetry=around.telemetry, clock=around.clock), quiet)
    began = around.clock.monotonic()
    try:
        await _look(record, lives, quiet)
    except TransportError as failed:
        _not_started(record, around, str(failed))
    finally:
        shown = record.era, record.version
        await lives.end("the examination is over")
        record.era, record.version = shown  # what was found, though that life is over
    found = _examination(record, around, elapsed_s=around.clock.monotonic() - began)
    around.telemetry.count(
        OperatorAct(
            verb=VERB,
            peer=server.name,
            principal=principal,
            reason=reason,
            detail=found.sentence,
        )
    )
    return found


def _not_started(record: PeerRecord, around: Surroundings, detail: str) -> None:
    if record.server.transport == "stdio":
        _conclude(record, around, Cause.PROCESS, Reason.SPAWN_FAILED, detail)
        record.evidence = spawn_evidence(detail)
    else:
        _conclude(record, around, Cause.CONFIG, Reason.CONFIG_INVALID, detail)


def _nothing(*_: object) -> None:
    """An examined server is in no catalogue."""


async def _look(record: PeerRecord, lives: Lives, around: Surroundings) -> None:
    server = record.server
    if server.problem is not None or not server.enabled:
        problem = server.problem or "it is disabled (enabled = false)"
        _conclude(record, around, Cause.CONFIG, Reason.CONFIG_INVALID, problem)
        return
    modern = around.memory.recall(server).proven_modern or server.era.expect_era == Era.MODERN.value
    life = await lives.open()
    found = await negotiate(
        life,
        permission=Permission.REFUSED if modern else Permission.GRANTED,
        proven=modern,
        trigger=Trigger.LOOK,
        previous_era=Era.UNKNOWN,
        respawn=lives.open,
        open_sse=lives.open_sse,
    )
    record.evidence = tuple(evidence.to_dict() for evidence in found.evidence)
    record.trace_id = f"{found.context.trace_id:032x}"
    if found.modern_evidence:
        around.memory.proved_modern(server)
    if found.era is None:
        _conclude(record, around, found.cause or Cause.PROTOCOL, found.reason, found.detail)
    else:
        await _list(record, lives, found, around=around)


async def _list(record: PeerRecord, lives: Lives, found: Round, *, around: Surroundings) -> None:
    server = record.server
    try:
        record.listing = await list_everything(
            lives.life,
            tool_filter=server.tools,
            bounds=ListBounds(seconds=server.timing.list_timeout_s),
        )
    except Unavailable as failed:
        _conclude(record, around, Cause.PROCESS, found.reason, str(failed))
        return
    record.listing_layer = "ok" if record.listing.complete else "failing"
    record.era = found.selected
    record.version = found.era.version if found.era is not None else None
    tools = len(record.listing.tools)
    record.status = PeerStatus(
        state=PeerState.READY if record.listing.complete else PeerState.DEGRADED,
        since_ns=around.clock.wall_ns(),
        reason=found.reason,
        detail=f"{record.era} {record.version}, {tools} tool{'' if tools == 1 else 's'}",
    )


def _conclude(
    record: PeerRecord, around: Surroundings, cause: Cause, reason: Reason, detail: str
) -> None:
    record.status = PeerStatus(
        state=PeerState.UNAVAILABLE,
        since_ns=around.clock.wall_ns(),
        cause=cause,
        reason=reason,
        detail=detail,
    )


def _examination(record: PeerRecord, around: Surroundings, *, elapsed_s: float) -> Examination:
    server = record.server
    revision = record.version if record.era is Era.LEGACY else None
    sentence = record.status.detail
    if revision is not None:
        sentence += "; it is served only with an explicit allow_legacy for it"
    return Examination(
        server=server.name,
        view=record.view(),
        legacy_revision=revision,
        fingerprint=server.fingerprint,
        sentence=sentence,
        elapsed_ms=round(elapsed_s * 1000, 1),
        suggestion=_suggestion(record, revision, around) if revision is not None else None,
    )


def _suggestion(record: PeerRecord, revision: str, around: Surroundings) -> Suggestion:
    today = datetime.fromtimestamp(around.now_s(), UTC).date()
    revisions = [revision]
    view = record.view()
    if view.transport == "sse" and revision != HTTP_SSE_REVISION:
        revisions.append(HTTP_SSE_REVISION)  # without it HTTP+SSE is not tried
    info = view.server_info
    who = f"{info['name']} {info['version']}" if info is not None else record.server.name
    return Suggestion(
        server=record.server.name,
        revision=revision,
        keys={
            "allow_legacy": revisions,
            "legacy_reason": f"{who} answered initialize, not server/discover, on {today}",
            "legacy_expires": (today + DEFAULT_ALLOWANCE).isoformat(),
            "legacy_fingerprint": record.server.fingerprint,
        },
    )
