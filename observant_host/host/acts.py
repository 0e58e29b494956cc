"""What a person looks at and does on a running host; each act is a recorded decision."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Final, cast

from observant_host.decisions.acts import (
    LIFTING,
    RULINGS,
    Act,
    Ruling,
    RulingAct,
    Step,
    decide,
    refusal,
    time_problem,
)
from observant_host.decisions.permission import DEFAULT_ALLOWANCE
from observant_host.decisions.words import counted
from observant_host.errors import HostError, InvalidCall
from observant_host.host.history import explain, incidents, purge_record
from observant_host.host.reload import Reloading
from observant_host.supervision.examine import Examination, examine
from observant_host.supervision.peer_state import ServerView, iso
from observant_host.telemetry.vocabulary import HostLifecycle, OperatorAct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from observant_host.config import ServerConfig
    from observant_host.incidents.purge import Purged
    from observant_host.supervision.supervisor import PeerSupervisor

DONE: Final[Mapping[Act, str]] = {
    Act.PROBE: "probed",
    Act.RETRY: "retried",
    Act.RESTART: "restarted",
    Act.HOLD: "held",
    Act.DISABLE: "disabled",
    Act.DRAIN: "drained",
    Act.ENABLE: "enabled",
}
MAX_REASON: Final = 1024
"""Characters: a sentence or two, kept on disk and shown in the server's status."""


class Acting(Reloading):
    """The part of a Host that a person operates."""

    async def act(
        self,
        name: str,
        act: str,
        *,
        until: float | None = None,
        for_s: float | None = None,
        principal: str = "library",
        reason: str = "",
    ) -> ServerView:
        """`probe`, `retry`, `restart`, `hold`, `disable`, `drain` or `enable` a server; returns the
        view after it, its next round or its end included.

        `until` (epoch seconds) or `for_s` says how long a hold, disable or drain stands; without it
        until another act. Those are on disk before they begin, and survive a restart of the host.
        Raises InvalidCall for what makes no sense where the server stands, HostError where the act
        was done and the disk refused it.
        """
        peer, core, verb = self._known_peer(name), self._running(), _verb(act)
        ends = self._ends(until, for_s)
        problem = time_problem(verb, ends, now_s=core.around.now_s())
        if problem is not None:
            raise InvalidCall(f"{verb} {name}: {problem}")
        where = peer.place()
        if decide(where, verb) is Step.REFUSE:
            detail = peer.record.status.detail
            raise InvalidCall(refusal(where, verb, server=name, detail=detail))
        ruling = self._ruling(peer, verb, until=ends, principal=principal, reason=reason)
        self._record(
            verb,
            name,
            principal=principal,
            reason=reason,
            detail="" if ends is None else f"until {iso(int(ends * 1e9))}",
        )
        kept = True
        if ruling != peer.record.ruling:
            core.memory.rule(peer.server, ruling)
            kept = await core.keep_memory()
        why = f"{DONE[verb]} by {principal}" + (f": {reason}" if reason else "")
        await peer.act(verb, ruling, why=why)
        if not kept:
            raise not_kept(f"{name} was {DONE[verb]}")
        return peer.record.view()

    def _ends(self, until: float | None, for_s: float | None) -> float | None:
        if until is not None and for_s is not None:
            raise InvalidCall("give until or for_s, not both")
        ends = until if for_s is None else self._running().around.now_s() + for_s
        if ends is not None and not math.isfinite(ends):
            raise InvalidCall("until and for_s are numbers of seconds")
        return ends

    def _ruling(
        self, peer: PeerSupervisor, verb: Act, *, until: float | None, principal: str, reason: str
    ) -> Ruling | None:
        """What stands after the act."""
        if verb in LIFTING:
            return None
        if verb not in RULINGS:
            return peer.record.ruling
        return Ruling(
            act=cast("RulingAct", verb.value),
            until=until,
            principal=principal,
            reason=reason[:MAX_REASON],
            time=self._running().around.now_s(),
        )

    async def probe(self, name: str, *, principal: str = "library", reason: str = "") -> ServerView:
        """A round now, or new lists where the era stands; the view after it. A recorded act."""
        return await self.act(name, Act.PROBE, principal=principal, reason=reason)

    async def allow(
        self,
        name: str,
        *,
        until: float | None = None,
        for_s: float | None = None,
        reason: str = "",
        principal: str = "library",
    ) -> ServerView:
        """Allow legacy for the server's present fingerprint, a recorded act; the view after the
        round that follows.

        `until`: epoch seconds, default in 180 days. Forgets that the server was modern; never
        overrules expect_era = "modern". It is on disk before the round begins; raises HostError
        after it where the disk refused.
        """
        peer, core = self._known_peer(name), self._running()
        ends = self._ends(until, for_s)
        if ends is None:
            ends = core.around.now_s() + DEFAULT_ALLOWANCE.total_seconds()
        self._record(
            "allow",
            name,
            principal=principal,
            reason=reason,
            detail=f"{peer.server.fingerprint} until {iso(int(ends * 1e9))}",
        )
        core.memory.allow(peer.server, until=ends, reason=reason, principal=principal)
        kept = await core.keep_memory()
        await peer.again()
        if not kept:
            raise not_kept(f"{name} is allowed")
        return peer.record.view()

    async def examine(
        self, name: str, *, principal: str = "library", reason: str = ""
    ) -> Examination:
        """A person's look at one server: one round with the allowance granted, in a process of its
        own that is ended afterwards. A recorded act; it changes nothing that is served."""
        peer, core = self._known_peer(name), self._running()
        return await examine(peer.server, core.around, principal=principal, reason=reason)

    def recent_decisions(self) -> list[dict[str, Any]]:
        """The last decisions of all servers and of the host, oldest first, from memory: also where
        nothing is recorded, and while the disk takes nothing."""
        flight = self._running().telemetry.flight
        return flight.recent() if flight is not None else []

    def log_tail(self) -> Sequence[str]:
        """The last lines of the log, where this host writes them itself."""
        return self._running().telemetry.log_tail()

    def dump_decisions(self, folder: Path, why: str) -> Path | None:
        """Write what `recent_decisions` tells to a file of OTLP JSON lines; blocks. None where the
        host never opened. Raises OSError."""
        core = self._core
        if core is None or not core.opened.is_set() or core.telemetry.flight is None:
            return None
        return core.telemetry.flight.dump(folder, why)

    async def dump_flight_recorder(self, folder: Path) -> Path | None:
        """The same off the loop, with a log line that says where. Raises OSError."""
        path = await asyncio.to_thread(self.dump_decisions, folder, "asked")
        if path is not None:
            self._running().telemetry.count(
                HostLifecycle(what="flight_recorder_dumped", detail=str(path))
            )
        return path

    @property
    def black_box(self) -> Path | None:
        """Where the last decisions are, if this host crashed."""
        return self._core.black_box if self._core is not None else None

    async def explain(self, name: str, *, since_ns: int | None = None) -> list[dict[str, Any]]:
        """The decisions about this server, oldest first: objects of `explain --json`.

        From the record where there is one, else the last thousand of this run.
        """
        return await explain(self._running(), name, since_ns=since_ns)

    async def incidents(
        self,
        *,
        server: str | None = None,
        since_ns: int | None = None,
        until_ns: int | None = None,
    ) -> dict[str, Any]:
        """Downgrades, outages and refusals of a time (default: the last day), each with its class:
        the document of `incidents --json`. Raises Unavailable where nothing is recorded."""
        return await incidents(self._running(), server=server, since_ns=since_ns, until_ns=until_ns)

    async def purge_record(
        self,
        *,
        before_ns: int | None,
        server: str | None,
        dry_run: bool = False,
        principal: str = "library",
        reason: str = "",
    ) -> Purged:
        """Delete from the record what ended before a moment, or is about one server (who need not
        be configured any more); a recorded act. Raises Unavailable, InvalidCall, HostError."""
        core = self._running()
        gone = await purge_record(core, before_ns=before_ns, server=server, dry_run=dry_run)
        if not dry_run:
            older = f" older than {iso(before_ns)}" if before_ns is not None else ""
            core.telemetry.count(
                OperatorAct(
                    verb="purge",
                    peer=server or "",
                    principal=principal,
                    reason=reason,
                    detail=f"{counted(gone.spans, 'span')}{older} deleted from the record",
                )
            )
        return gone

    def _record(
        self, verb: str, name: str, *, principal: str, reason: str, detail: str = ""
    ) -> None:
        self._running().telemetry.count(
            OperatorAct(verb=verb, peer=name, principal=principal, reason=reason, detail=detail)
        )

    def _known(self, name: str) -> ServerConfig:
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(self._servers) or "none"
            raise InvalidCall(f"no server {name!r} is configured; there are: {known}", unknown=True)
        return server

    def _known_peer(self, name: str) -> PeerSupervisor:
        self._known(name)
        peer = self._running().fleet.get(name)
        if peer is None:
            raise InvalidCall(f"no server {name!r} runs in this host", unknown=True)
        return peer


def _verb(act: str) -> Act:
    try:
        return Act(act)
    except ValueError:
        raise InvalidCall(
            f"there is no act {act!r}; there are: {', '.join(Act)}", unknown=True
        ) from None


def not_kept(done: str) -> HostError:
    return HostError(
        f"{done} in this run, but that could not be written to the state folder (see "
        "memory_not_saved in the log): free the disk; it is tried again for as long as the host "
        "runs"
    )
