"""A week on three hosts, told by the real recorder on a clock that is passed.

What each host says is what a running host says in such a case: the same facts in the same order.
"""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from observant_host.config import TelemetrySettings
from observant_host.telemetry.facade import Telemetry
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.otlp_json import OtlpJson
from observant_host.telemetry.recorder import Recorder
from observant_host.telemetry.vocabulary import (
    ConfigLoaded,
    EraDecide,
    EraDropped,
    HostLifecycle,
    LoopStalled,
    OperatorAct,
    PeerRestart,
    PeerStateChanged,
    RoutedCall,
    TelemetryLost,
)
from observant_host.wire.revisions import LEGACY, MODERN

if TYPE_CHECKING:
    from pathlib import Path

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
SECOND = 1_000_000_000
SERVERS = ("archive", "billing", "forecast", "mail", "search", "tickets", "wiki")

Piece = dict[str, Any]


def piece(step: str = "discover", outcome: str = "error", **more: Any) -> Piece:
    keys = ("rpc_code", "http_status", "content_type", "excerpt", "elapsed_ms", "timeout_ms")
    blank = {"step": step, "version": MODERN[0], "outcome": outcome, "late": False}
    return {**dict.fromkeys(keys), **blank, **more}


SILENCE = piece(outcome="timeout", elapsed_ms=5000.0, timeout_ms=5000.0)
LATE = piece(outcome="ok", elapsed_ms=9300.0, timeout_ms=5000.0, late=True)
PROMPT = piece(outcome="ok", elapsed_ms=40.0, timeout_ms=5000.0)
OLD = piece(rpc_code=-32601, elapsed_ms=12.0, timeout_ms=5000.0, excerpt='{"error": -32601}')
INITIALIZED = piece("initialize", "ok", elapsed_ms=9.0, timeout_ms=5000.0)
PAGE = piece(
    outcome="http_candidate",
    http_status=400,
    content_type="text/html",
    excerpt="<html><body>Your session has expired. Sign in to the company network.</body></html>",
)
TOO_NEW = piece(outcome="modern_error", rpc_code=-32022)


class Week:
    """Where the clock of all three hosts stands."""

    def __init__(self) -> None:
        self.now_ns = int(MONDAY.timestamp() * SECOND)

    def at(self, day: int, clock: str) -> None:
        """Forward to this time of the day (0: Monday)."""
        hours, minutes, *seconds = (int(part) for part in clock.split(":"))
        of_day = hours * 3600 + minutes * 60 + sum(seconds)
        then = int(MONDAY.timestamp() + day * 86_400 + of_day) * SECOND
        assert then >= self.now_ns, f"{day} {clock} is over"
        self.now_ns = then

    def later(self, seconds: float) -> None:
        self.now_ns += round(seconds * SECOND)


class Recorded:
    """One host, as its record tells of it."""

    def __init__(self, folder: Path, name: str, week: Week) -> None:
        self.folder = folder
        self._week = week
        self._life: dict[str, int] = {}
        self._era: dict[str, str] = {}
        resource = {"service.instance.id": name, "service.version": "0.1.0"}
        recorder = Recorder(
            folder,
            settings=TelemetrySettings(),
            encoder=OtlpJson(resource, version="0.1.0", cleaner=Cleaner(Masker())),
            wall_ns=lambda: week.now_ns,
        )
        self.telemetry = Telemetry(
            starter=OwnIds(),
            sinks=[recorder],
            closing=[recorder],
            wall_ns=lambda: week.now_ns,
        )

    def boot(self, config: str = "c0ffee") -> None:
        count = self.telemetry.count
        for stream in ("decisions", "traces"):
            count(TelemetryLost(stream=stream, spans=0))
        count(HostLifecycle(what="listening"))
        count(ConfigLoaded(hash=config, successful=True))
        for server in SERVERS:
            if server == "archive":
                self.legacy(server, "1.4.2", trigger="boot")
            else:
                self.modern(server, "2.1.0", trigger="boot")
        count(HostLifecycle(what="published"))

    def modern(self, server: str, version: str, *, trigger: str = "restart", **more: Any) -> None:
        """A round that found it modern; its lists were read."""
        evidence = more.pop("evidence", (PROMPT,))
        self._decide(
            server, "modern", "discover_ok", evidence, trigger, server_version=version, **more
        )
        self._state(server, "ready")

    def legacy(self, server: str, version: str, *, trigger: str = "restart", **more: Any) -> None:
        """A round in which legacy was spoken, as a person allowed."""
        evidence = more.pop("evidence", (OLD, INITIALIZED))
        self._decide(
            server, "legacy", "initialize_ok", evidence, trigger,
            server_version=version, version=LEGACY[0], candidates=(*MODERN, *LEGACY), **more,
        )  # fmt: skip
        self._state(server, "ready")

    def refuse(self, server: str, reason: str, cause: str, *evidence: Piece, **more: Any) -> None:
        """A round without an era."""
        trigger = more.pop("trigger", "restart")
        self._decide(server, "unknown", reason, evidence, trigger, **more)
        self._state(server, "unavailable", cause=cause, reason=reason)

    def die(self, server: str, reason: str = "exit", *, code: int | None = 1) -> None:
        """Its process or connection ended; the next life begins."""
        count = self.telemetry.count
        count(
            EraDropped(
                peer=server,
                generation=self._life[server],
                era=self._era.get(server, "unknown"),
                why=reason,
            )
        )
        count(
            PeerRestart(
                peer=server,
                reason=reason,
                generation=self._life[server],
                attempt=1,
                backoff_ms=500.0,
                exit_code=code,
                stderr_tail="Traceback\nKeyError: 'DATABASE_URL'\n" if code else "",
            )
        )
        cause = "network" if reason == "connection_lost" else "process"
        self._state(server, "backoff", cause=cause, reason="discover_ok")
        self._life[server] += 1

    def call(self, server: str, outcome: str = "ok", times: int = 1) -> None:
        fact = RoutedCall(
            name=f"{server}/x",
            method="tools/call",
            peer=server,
            local_name="x",
            era=self._era.get(server, "unknown"),
        )
        for _ in range(times):
            with self.telemetry.operation(fact) as op:
                op.end_as(outcome, None if outcome == "ok" else outcome)

    def act(self, verb: str, server: str, reason: str) -> None:
        self.telemetry.count(
            OperatorAct(verb=verb, peer=server, principal="cli:ada", reason=reason)
        )

    def stall(self, seconds: float) -> None:
        self.telemetry.count(LoopStalled(lag_ms=seconds * 1000))

    def lose(self, spans: int) -> None:
        self.telemetry.count(TelemetryLost(stream="traces", spans=spans))

    def configure(self, config: str) -> None:
        self.telemetry.count(ConfigLoaded(hash=config, successful=True))

    def _decide(
        self,
        server: str,
        selected: str,
        reason: str,
        evidence: tuple[Piece, ...],
        trigger: str,
        **more: Any,
    ) -> None:
        previous = self._era.get(server, "unknown")
        chosen = selected != "unknown"
        first = "first" if previous == "unknown" else "none"
        up_or_down = "downgrade" if selected == "legacy" else "upgrade"
        direction = first if previous in ("unknown", selected) else up_or_down
        fact = EraDecide(
            peer=server,
            generation=self._life.setdefault(server, 1),
            trigger=trigger,
            previous=previous,
            **{
                "candidates": MODERN,
                "selected": selected,
                "direction": direction if chosen else "none",
                "reason": reason,
                "evidence": evidence,
                "detail": f"{server}: {reason}.",
                **more,
            },
        )
        with self.telemetry.operation(fact) as op:
            if not chosen:
                op.end_as("unavailable", reason)
        self._week.later(1)  # what follows from a decision is told after it
        if chosen:
            self._era[server] = selected

    def _state(
        self, server: str, state: str, *, cause: str | None = None, reason: str = ""
    ) -> None:
        self.telemetry.count(
            PeerStateChanged(
                peer=server,
                previous="",
                state=state,
                cause=cause,
                reason=reason,
                detail=f"{server} is {state}.",
                time_in_previous_ms=1.0,
                generation=self._life.get(server, 1),
            )
        )


def lines_of(folders: list[Path]) -> list[bytes]:
    """Every line of these records, rotated or not."""
    found: list[bytes] = []
    for folder in folders:
        for path in sorted(folder.rglob("*.jsonl*")):
            data = path.read_bytes()
            found += (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines(True)
    return found


async def record_week(folder: Path) -> list[Path]:
    """The state folders of hosts a, b and c after that week."""
    week = Week()
    a, b, c = hosts = [Recorded(folder / name, name, week) for name in "abc"]
    week.at(0, "08:00")
    for host in hosts:
        host.boot()
        for server in SERVERS:
            host.call(server, times=3)
    _a_slow_server(week, b)
    _a_rollback(week, a, b, c)
    _a_page_in_between(week, a)
    _a_stalled_host(week, c)
    _a_defect_of_ours(week, b)
    _a_crash_and_a_login(week, a, c)
    for host in hosts:
        await host.telemetry.close()
    return [host.folder for host in hosts]


def _a_slow_server(week: Week, host: Recorded) -> None:
    """Monday night: it needs 9.3 s after a restart, and is asked to be there within 5."""
    week.at(0, "23:00")
    host.die("forecast", "memory", code=-9)
    week.later(6)
    host.call("forecast", "unavailable", times=2)
    host.refuse("forecast", "ambiguous_timeout", "process", SILENCE)
    week.later(4.3)
    host.modern("forecast", "2.1.0", trigger="late_evidence", evidence=(LATE,))


def _a_rollback(week: Week, a: Recorded, b: Recorded, c: Recorded) -> None:
    """Tuesday: the vendor rolls billing back. Two hosts refuse, c only alerts."""
    week.at(1, "10:00")
    c.configure("beef02")
    for host in (a, b):
        host.die("billing", "connection_lost", code=None)
        week.later(20)
        host.refuse("billing", "was_modern", "policy", OLD)
        host.call("billing", "unavailable", times=4)
    c.die("billing", "connection_lost", code=None)
    week.later(1)
    c.legacy("billing", "1.9.3", expected=False)
    c.call("billing", times=5)
    c.call("billing", "tool_error", times=2)
    week.at(1, "10:20")
    a.act("allow", "billing", "vendor's rollback of release 2.1")
    a.legacy("billing", "1.9.3", trigger="manual")
    a.call("billing", times=3)
    week.at(2, "09:00")
    for host in (a, b, c):
        host.modern("billing", "2.1.1")


def _a_page_in_between(week: Week, host: Recorded) -> None:
    """Thursday: the company's proxy wants a login of its own."""
    week.at(3, "12:00")
    host.die("search", "connection_lost", code=None)
    week.later(2)
    host.refuse("search", "was_modern", "policy", PAGE)
    host.lose(12)
    week.later(600)
    host.modern("search", "2.1.0", trigger="reprobe")


def _a_stalled_host(week: Week, host: Recorded) -> None:
    """Friday: the loop of c stands still, and three servers look silent."""
    week.at(4, "14:00")
    host.stall(5.2)
    for server in ("mail", "tickets", "wiki"):
        host.die(server, "unresponsive", code=None)
        week.later(5)
        host.refuse(server, "ambiguous_timeout", "process", SILENCE)
    week.later(30)
    for server in ("mail", "tickets", "wiki"):
        host.modern(server, "2.1.0", trigger="reprobe")


def _a_defect_of_ours(week: Week, host: Recorded) -> None:
    """Friday evening: what must not happen, forged here."""
    week.at(4, "20:00")
    host.legacy("mail", "2.1.0", expected=False, evidence=(TOO_NEW, INITIALIZED))
    week.later(60)
    host.modern("mail", "2.1.0")


def _a_crash_and_a_login(week: Week, a: Recorded, c: Recorded) -> None:
    """Saturday: an ordinary crash on a; on c a token that was rotated, and nobody acts."""
    week.at(5, "03:00")
    a.die("wiki", "exit", code=1)
    week.later(1)
    a.modern("wiki", "2.1.0")
    week.at(5, "11:00")
    login = piece(outcome="http_other", http_status=401, content_type="application/json")
    c.refuse("tickets", "auth_required", "auth", login, trigger="reprobe")
