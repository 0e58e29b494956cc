"""The same story by both ways of a call: told in one go, and told one operation at a time.

A sink that wants to see each fact by itself sends every call the long way; so a host that has one,
and a host whose sinks all take calls in one go, must tell, give, send and leave behind the same.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host import Host, StdioServer, errors
from observant_host.config import HostConfig, ServerConfig
from observant_host.supervision.declared import declare
from observant_host.telemetry import vocabulary as v
from observant_host.telemetry.facade import Telemetry
from observant_host.telemetry.finished import pair_of
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.metrics import MetricSink
from tests.scenarios.http import add_url
from tests.support.hosts import PATIENCE_S, QUICK
from tests.support.peers import events, received, scripted
from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path

    from observant_host.supervision.supervisor import PeerSupervisor
    from observant_host.telemetry.finished import Finished, OneOfMany, Sink, Starter
    from observant_host.telemetry.vocabulary import Fact

OF_CALLS: Final = (
    *(v.RoutedCall, v.Request, v.DeadlineExpired, v.RetryScheduled, v.RetryDenied),
    *(v.ServerMessage, v.FrameDropped, v.StructuredContentProblem),
)
"""What is told because of a call; the rest (starts, lists, probes) depends on the moment."""
MEASURED: Final = ("elapsed_ms", "delay_ms", "request_id", "excerpt")
_CALLS: Final = re.compile(
    r"observant_host_(calls|tool_calls|attempts|call_duration|tool_duration|overhead|retr"
    r"|deadline|structured|label)|mcp_client_operation"
)
_PROBED: Final = re.compile(r'"(server/discover|ping|tools/list|initialize|subscriptions/listen)"')


class Watching:
    """Keeps all that is told, one by one: calls that it hears of are operations of their own."""

    name: Final = "log"

    def __init__(self) -> None:
        self.all: list[Finished] = []
        self.in_one_go = 0

    def wants(self, _kind: type[Fact]) -> bool:
        return True

    def emit(self, done: Finished) -> None:
        self.all.append(done)


class Relaxed(Watching):
    """Takes calls that are alike in one go."""

    def alike(self, call: Finished, request: Finished) -> Callable[[OneOfMany], None]:
        def emit(done: OneOfMany) -> None:
            self.in_one_go += 1
            self.all += pair_of(done, call, request)

        return emit


class Run:
    """One host with one server `s`, and what came of its calls in `results`."""

    def __init__(
        self,
        watching: Watching,
        log: Path,
        *,
        of_host: dict[str, Any],
        options: dict[str, Any],
        url: str | None = None,
        starter: Starter | None = None,
        sinks: Sequence[Sink] = (),
        **server: Any,
    ) -> None:
        self.watching = watching
        self.metrics = MetricSink()
        telemetry = Telemetry(
            starter=starter or OwnIds(),
            sinks=(watching, self.metrics, *sinks),
            metrics=self.metrics,
        )
        self._options, self._keys = {"log": log, **options}, server
        declared = self.declared()
        keys = of_host if url is not None else {**of_host, "config": HostConfig((declared,))}
        self.host = Host(telemetry=telemetry, startup_deadline_s=PATIENCE_S, **keys)
        self.log = log
        self.go = log.with_suffix(".go")
        """What its tool `held` waits for."""
        self.results: list[Any] = []
        self.seen: list[Any] = []
        if url is not None:
            add_url(self.host, "s", url, **server)

    def declared(self, name: str = "s", **changed: Any) -> ServerConfig:
        """Its server as it is configured, but for what changed."""
        options = {**self._options, **changed.pop("options", {})}
        keys = {**QUICK, **self._keys, **changed}
        allow_legacy = keys.pop("allow_legacy", False)
        return declare(name, StdioServer(scripted(**options)), allow_legacy=allow_legacy, keys=keys)

    async def reload(self, *servers: ServerConfig) -> None:
        await self.host.reload(HostConfig(servers))

    @property
    def supervisor(self) -> PeerSupervisor:
        found = self.host.core.fleet.get("s")
        assert found is not None
        return found

    async def call(self, name: str, arguments: Any = None, **options: Any) -> Any:
        """Make it, and keep what came of it, in the order in which calls began."""
        at = len(self.results)
        self.results.append(None)
        try:
            done = await self.host.call_tool(name, arguments, **options)
        except (errors.CallError, asyncio.CancelledError) as error:
            self.results[at] = told_of(error)
            return error
        self.results[at] = told_of(done)
        return done

    def begin(self, name: str, arguments: Any = None, **options: Any) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.call(name, arguments, **options))

    async def reached(self, tool: str, times: int = 1) -> None:
        """Until the server has got so many calls of this tool."""
        async with asyncio.timeout(PATIENCE_S):
            while len([one for one in self._calls() if one["params"]["name"] == tool]) < times:
                await asyncio.sleep(0.01)

    async def hold(self, times: int = 1, **options: Any) -> asyncio.Task[Any]:
        """A call that the server has got, and answers once `go` is there."""
        task = self.begin("held", {"file": str(self.go)}, **options)
        await self.reached("held", times)
        return task

    async def got(self, method: str, times: int = 1) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(received(self.log, method)) < times:
                await asyncio.sleep(0.01)

    def look(self) -> None:
        """Note what an operator sees of the calls that are open."""
        self.seen += [
            (
                *(one.id, one.name, one.method, one.server, one.principal, one.deadline is None),
                *(one.attempts, one.state, one.progress, len(one.trace_id)),
            )
            for one in self.host.calls_in_flight()
        ]

    def _calls(self) -> list[Any]:
        return received(self.log, "tools/call")

    def nothing_is_left(self, supervisor: PeerSupervisor) -> None:
        """No place, no entry, no open call, though all of them have ended."""
        peer = supervisor.peer
        assert (peer.gate.in_flight, peer.gate.queued) == (0, 0)
        assert self.host.open_calls == 0
        if peer.life is not None:
            open_ones = [one.method for one in peer.life.pending.entries()]
            assert "tools/call" not in open_ones

    def account(self, supervisor: PeerSupervisor) -> dict[str, Any]:
        """All that must be the same, whichever way its calls went."""
        ended = sorted(
            (
                *(one.id, one.name, one.method, one.server, one.principal, one.outcome),
                *(one.delivery, one.fault, one.attempts),
            )
            for one in self.host.recent_calls()
        )
        return {
            "told": self._told(),
            "results": self.results,
            "seen": self.seen,
            "ended": ended,
            "last_call": supervisor.record.last_call,
            "numbers": numbers(self.metrics),
        }

    def _told(self) -> list[Any]:
        """Call by call, since those that overlap may be told in any order."""
        told = [one for one in self.watching.all if _is_of_a_call(one.fact)]
        calls = [one.context.trace_id for one in told if type(one.fact) is v.RoutedCall]
        began = {one.context.trace_id: one.start_ns for one in told}
        return [
            _facts([one for one in told if one.context.trace_id == trace_id])
            for trace_id in sorted(set(calls), key=began.__getitem__)
        ]

    def received(self) -> list[Any]:
        """What the server got of calls, ids by their order, and spans by what they are."""
        spans = {
            one.context.span_hex: type(one.fact).__name__
            for one in self.watching.all
            if _is_of_a_call(one.fact)
        }
        ids: dict[Any, int] = {}
        found: list[Any] = []
        for message in received(self.log):
            method, params = message.get("method"), message.get("params") or {}
            meta = params.get("_meta") or {}
            if "traceparent" in meta:
                version, _, span, flags = meta["traceparent"].split("-")
                meta["traceparent"] = (version, spans.get(span), flags)
            if method == "tools/call":
                ids[message["id"]] = len(ids)
                if "progressToken" in meta:
                    assert meta["progressToken"] == message["id"]
                    meta["progressToken"] = "its id"
                found.append((method, json.dumps(params).replace(str(self.go), "its file")))
            elif method == "notifications/cancelled" and params.get("requestId") not in ids:
                continue  # a probe
            elif method in ("notifications/cancelled", "tasks/get", "logging/setLevel"):
                params = {**params, "requestId": ids.get(params.get("requestId"))}
                found.append((method, params))
        return found + [
            sorted(one for one in headers.items() if one[0] not in ("host", "content-length"))
            for headers in _headers(self.log)
            if headers.get("mcp-method") == "tools/call"
        ]


def _headers(log: Path) -> list[dict[str, str]]:
    """What each HTTP request said beside its body."""
    requests = events(log, "request")
    return [{key.lower(): value for key, value in one["headers"].items()} for one in requests]


def _is_of_a_call(fact: Fact) -> bool:
    if isinstance(fact, v.Request):
        return fact.purpose in ("call", "task")
    return isinstance(fact, OF_CALLS)


def _facts(told: list[Finished]) -> list[Any]:
    places = {one.context.span_id: at for at, one in enumerate(told)}
    found = []
    for one in told:
        fact = {
            key: _rough(key, value) if isinstance(value, float) else value
            for key, value in msgspec.structs.asdict(one.fact).items()
            if key not in MEASURED
        }
        parent = None if one.parent is None else places.get(one.parent.span_id, "outside")
        links = [(places.get(link.context.span_id), link.type) for link in one.links]
        events = [event.name for event in one.events]
        whole = one.duration_ns >= one.inner_ns and one.start_ns > 0
        found.append(
            (
                *(type(one.fact).__name__, fact, one.outcome, one.error_type, parent),
                *(links, events, whole, one.context.sampled, one.context.tracestate),
            )
        )
        if isinstance(one.fact, v.Request):
            assert one.fact.request_id > 0
    return found


def _rough(key: str, value: float) -> float | bool:
    """As far as it does not depend on the moment."""
    return value > 0 if key == "queued_ms" else float(f"{value:.0e}")


def told_of(done: Any) -> dict[str, Any]:
    """What its caller has, but for times and ids."""
    if isinstance(done, asyncio.CancelledError):
        return {"type": "CancelledError"}
    call = done.call
    facts: tuple[Any, ...] | None = None
    if call is not None:
        known = (call.name, call.server, call.local_name, call.attempts, call.era)
        facts = (*known, call.duration_ms > 0, call.trace_id is not None)
    said = {"type": type(done).__name__, "outcome": done.outcome, "delivery": done.delivery}
    said |= {"fault": done.fault, "call": facts}
    if isinstance(done, errors.CallError):
        text = re.sub(r":\d+/mcp|another \d+ s", ":N", str(done))
        about = re.sub(r"within ([\d.]+) s", lambda found: f"within {float(found[1]):.0g} s", text)
        return {**said, "text": about, "begun": done.begun}
    problem = done.schema_problem
    return {
        **said,
        "raw": done.raw,
        "is_error": done.is_error,
        "typed": done.typed,
        "problem": None if problem is None else problem.kind,
        "input": None if done.input_required is None else sorted(done.input_required.requests),
    }


def numbers(metrics: MetricSink) -> dict[tuple[str, str], float]:
    """What `/metrics` has of calls, but for how long they took."""
    found = {}
    for family in metrics._children.collect():
        for sample in family.samples:
            timed = sample.name.endswith(("_sum", "_bucket", "_created"))
            labels = json.dumps(sample.labels, sort_keys=True)
            of_calls = _CALLS.match(sample.name) and not _PROBED.search(labels)
            if of_calls and not timed and sample.value:
                found[sample.name, labels] = sample.value
    return found


def unlike(one: Any, other: Any) -> list[str]:
    """The places at which they differ, in words."""
    if isinstance(one, dict):
        one, other = list(one.items()), list(other.items())
    pairs = enumerate(zip_longest(one, other))
    return [f"{at}: {left}\n and not {right}" for at, (left, right) in pairs if left != right]


async def same_by_both_ways(
    story: Callable[[Run], Coroutine[Any, Any, None]],
    tmp_path: Path,
    *,
    of_host: dict[str, Any] | None = None,
    in_one_go: int | None = None,
    options: dict[str, Any] | None = None,
    over: str = "stdio",
    **server: Any,
) -> Run:
    """Tell it twice, and compare. `in_one_go`: how many of its calls must have gone so; None: at
    least one. `options` are the scripted server's, `server` holds the host's for it. Gives the run
    by the short way."""
    given = options or {}
    runs = []
    for number, kind in enumerate((Relaxed, Watching)):
        before, log = asyncio.all_tasks(), tmp_path / f"log-{number}"
        async with AsyncExitStack() as stack:
            url = None
            if over == "http":
                url = (await stack.enter_async_context(serving(log=log, **given))).url
            run = Run(kind(), log, of_host=of_host or {}, options=given, url=url, **server)
            async with run.host:
                await run.host.wait_for("s", "ready")
                supervisor = run.supervisor
                await story(run)
                run.nothing_is_left(supervisor)
                account = run.account(supervisor)
        runs.append((run, {**account, "received": run.received()}))
        assert asyncio.all_tasks() <= before
    (short, one), (_, other) = runs
    for what, value in other.items():
        assert one[what] == value, "\n".join([what, *unlike(one[what], value)])
    went = short.watching.in_one_go
    assert went == in_one_go if in_one_go is not None else went > 0
    return short
