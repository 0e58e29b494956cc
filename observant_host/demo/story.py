"""What the demo shows, step by step, each with the promises it checks while it shows them.

The story asserts itself: a promise that does not hold is told as broken, and the demo fails.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any, Protocol

from observant_host.errors import CallError
from observant_host.incidents.record import read_timeline, read_trace, render_trace
from observant_host.timing.clock import SystemClock
from observant_host.timing.deadline import deadline

if TYPE_CHECKING:
    from observant_host.demo.stage import Stage
    from observant_host.host import Host
    from observant_host.incidents.otlp import RecordedSpan
    from observant_host.incidents.record import TraceNode
    from observant_host.supervision.peer_state import ServerView

PATIENCE_S = 15.0
"""How long the story waits for anything: a demo that hangs has failed."""


ERA_DROP = "observant_host.era.drop"
ERA_DECIDE = "observant_host.era.decide"


class Teller(Protocol):
    """Who tells the story to a person."""

    def step(self, title: str) -> None: ...

    def line(self, text: str) -> None: ...

    def row(self, text: str) -> None: ...

    def table(self, columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> None: ...

    def promise(self, text: str, *, kept: bool) -> None: ...


class Story:
    """One telling. `broken` are the promises that did not hold."""

    def __init__(self, host: Host, stage: Stage, tell: Teller) -> None:
        self.host = host
        self.stage = stage
        self.tell = tell
        self.kept = 0
        self.broken: list[str] = []
        self.began_ns = SystemClock().wall_ns()

    async def whole(self) -> None:
        await self.discovery()
        await self.names()
        await self.legacy_allowed()
        await self.legacy_refused()
        await self.late()
        await self.behind_a_url()
        await self.crash()
        await self.downgrade()
        await self.telemetry()

    def promise(self, text: str, kept: object) -> None:
        """Tell whether a promise holds, and remember a broken one."""
        if kept:
            self.kept += 1
        else:
            self.broken.append(text)
        self.tell.promise(text, kept=bool(kept))

    async def wait(self, server: str, *states: str) -> ServerView:
        """The server's view once it is in one of `states`; whatever it is when patience ends."""
        try:
            async with deadline(
                PATIENCE_S, scope="connect", peer=server, telemetry=self.host.telemetry
            ):
                return await self.host.wait_for(server, *states)
        except TimeoutError:
            return self.host.servers[server]

    async def call(self, name: str, **arguments: str) -> Any:
        """One call, told as a line; the CallResult, or the CallError it ended with."""
        said = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        try:
            result = await self.host.call_tool(name, arguments, deadline_s=PATIENCE_S)
        except CallError as error:
            self.tell.line(f"call {name}({said})")
            self.tell.line(f"  -> {error.outcome}: {error}")
            return error
        self.tell.line(f"call {name}({said})")
        self.tell.line(f"  -> {result.text}")
        return result

    async def discovery(self) -> None:
        self.tell.step("Seven servers start; each gets server/discover, and its answer decides")
        views = self.host.servers
        self.tell.table(
            ("server", "state", "era", "reason", "tools"),
            [
                (v.name, v.state, f"{v.era} {v.version or ''}".strip(), v.reason, v.tools)
                for v in views.values()
            ],
        )
        for name in ("library", "web", "billing", "ferries"):
            self.promise(
                f"{name} is modern, by its DiscoverResult",
                (views[name].state, views[name].reason) == ("ready", "discover_ok"),
            )

    async def names(self) -> None:
        self.tell.step("Two servers offer `search`: both can be called, neither is overwritten")
        for tool in self.host.catalogue.tools:
            self.tell.line(f"{tool.name:<14} is {tool.local_name} of {tool.server}")
        for collision in self.host.catalogue.collisions:
            others = ", ".join(f"{name} ({server})" for server, name in collision.others)
            self.tell.line(f"collision: {collision.name} belongs to {collision.owner}; {others}")
        first = await self.call("search", query="tides")
        second = await self.call("web/search", query="tides")
        self.promise("`search` went to library", getattr(first, "server", None) == "library")
        self.promise("`web/search` went to web", getattr(second, "server", None) == "web")

    async def legacy_allowed(self) -> None:
        self.tell.step("archive is old, and the configuration allows it: one bounded initialize")
        view = self.host.servers["archive"]
        self.evidence(view)
        self.tell.line(view.detail)
        self.promise(
            "archive is legacy, by a valid answer to initialize",
            (view.state, view.era, view.reason) == ("ready", "legacy", "initialize_ok"),
        )
        result = await self.call("find_record", number="1871-04")
        self.promise("its tool answers", getattr(result, "outcome", None) == "ok")

    async def legacy_refused(self) -> None:
        self.tell.step(
            "attic is just as old, and nobody allowed it: refused, and told how to allow"
        )
        view = self.host.servers["attic"]
        self.evidence(view)
        self.tell.line(view.detail)
        self.promise(
            "attic is unavailable by policy",
            (view.state, view.cause) == ("unavailable", "policy"),
        )
        self.promise("the line to add is named", "allow_legacy" in view.detail)
        asked = self.stage.asked("attic")
        self.tell.line(f"what attic itself was asked: {', '.join(dict.fromkeys(asked))}")
        self.promise("attic never received initialize", asked and "initialize" not in asked)

    async def late(self) -> None:
        self.tell.step("forecast is modern but slow: never mistaken for an old server")
        view = await self.wait("forecast", "ready")
        history = await self.host.explain("forecast", since_ns=self.began_ns)
        for decision in history:
            self.tell.line(f"{decision['from']} -> {decision['to']}: {decision['reason']}")
        self.promise(
            "its first round ended without an answer",
            any(decision["reason"] == "ambiguous_timeout" for decision in history),
        )
        self.promise("it joined late, as modern", (view.state, view.era) == ("ready", "modern"))
        self.promise(
            "it never received initialize", "initialize" not in self.stage.asked("forecast")
        )
        await self.call("forecast", town="Vik")

    async def behind_a_url(self) -> None:
        self.tell.step(
            "ferries is behind a URL: modern over HTTP, its secret in a file that rotates"
        )
        before = self.host.servers["ferries"]
        self.evidence(before)
        self.promise(
            "its era was decided over HTTP",
            (before.transport, before.era, before.reason) == ("http", "modern", "discover_ok"),
        )
        result = await self.call("timetable", harbour="Þorlákshöfn")
        said = getattr(result, "text", "")
        self.promise(
            "headers say what is called, for proxies that read no bodies",
            "Mcp-Name: timetable" in said and "Mcp-Param-Harbour: =?base64?" in said,
        )
        self.tell.line("another secret is in the file, and ferries takes no other any more")
        old, new = self.stage.token.read_text(), self.stage.new_token()
        result = await self.call("timetable", harbour="Vik")
        after = self.host.servers["ferries"]
        self.promise(
            "the call after it took the new one, in the same life",
            getattr(result, "outcome", None) == "ok" and after.generation == before.generation,
        )
        asked = self.stage.asked("ferries")
        self.tell.line(f"what ferries itself was asked: {', '.join(asked)}")
        self.promise(
            "it received neither initialize nor a GET",
            asked and not {"initialize", "GET"} & set(asked),
        )
        await self.host.telemetry.flush()
        record = await asyncio.to_thread(self.stage.record)
        self.promise(
            "neither secret is in the record",
            record and old.encode() not in record and new.encode() not in record,
        )

    async def crash(self) -> None:
        self.tell.step("library crashes: its era dies with the process, discover comes first again")
        before = self.host.servers["library"]
        asked_before = len(self.stage.asked("library"))
        since_ns = SystemClock().wall_ns()
        self.kill(before)
        await self.wait("library", "backoff", "starting")
        answer = await self.call("search", query="tides")
        call = getattr(answer, "call", None)
        self.promise(
            "a call to its name begins its next start and is answered by it, not by web",
            getattr(answer, "outcome", None) == "ok"
            and call is not None
            and call.server == "library",
        )
        after = await self.wait("library", "ready")
        fresh = self.stage.asked("library")[asked_before:]
        self.tell.line(f"what the new process was asked: {', '.join(fresh)}")
        self.promise(
            "a new process is ready",
            after.state == "ready"
            and after.pid != before.pid
            and after.generation == before.generation + 1,
        )
        self.promise("its first request was server/discover", fresh[:1] == ["server/discover"])
        names = [span.name for span in await self.recorded("library", since_ns)]
        self.tell.line(f"the record says: {', '.join(names)}")
        self.promise(
            "the era was dropped before the next was decided",
            ERA_DROP in names and names.index(ERA_DROP) < names.index(ERA_DECIDE),
        )
        result = await self.call("search", query="tides")
        self.promise("`search` is library's again", getattr(result, "server", None) == "library")

    async def downgrade(self) -> None:
        self.tell.step("billing is rolled back to an old release: the downgrade is refused")
        self.tell.line("it proved modern before, and its allowance still stands in the file")
        self.stage.rollback.touch()
        asked_before = len(self.stage.asked("billing"))
        self.kill(self.host.servers["billing"])
        view = await self.wait("billing", "unavailable")
        self.evidence(view)
        self.tell.line(view.detail)
        self.promise("refused with was_modern", view.reason == "was_modern")
        self.tell.line(f"the refusal in the record, trace {view.trace_id}:")
        await self.trace(view.trace_id)
        fresh = self.stage.asked("billing")[asked_before:]
        self.promise("it never received initialize", fresh and "initialize" not in fresh)

    async def recorded(self, server: str, since_ns: int) -> list[RecordedSpan]:
        """What the record on disk holds about `server` since then."""
        await self.host.telemetry.flush()
        return await asyncio.to_thread(
            read_timeline, [self.stage.state_dir], server=server, since_ns=since_ns
        )

    async def trace(self, trace_id: str | None) -> list[TraceNode]:
        """Tell one recorded trace as a tree."""
        await self.host.telemetry.flush()
        roots = await asyncio.to_thread(read_trace, [self.stage.state_dir], trace_id or "")
        for line in render_trace(roots).splitlines():
            self.tell.row(f"  {line}")
        return roots

    def kill(self, view: ServerView) -> None:
        """A crash, as the operating system's out-of-memory killer would do it."""
        self.tell.line(f"kill -9 {view.pid} ({view.name})")
        if view.pid is not None:
            os.kill(view.pid, signal.SIGKILL)

    def evidence(self, view: ServerView) -> None:
        for one in view.evidence:
            code = f" ({one['rpc_code']})" if one.get("rpc_code") is not None else ""
            self.tell.line(f"{view.name}: {one['step']} -> {one['outcome']}{code}")

    async def telemetry(self) -> None:
        self.tell.step("All of this was measured and recorded")
        body, _ = await self.host.telemetry.render()
        for line in excerpt(body.decode()):
            self.tell.row(line)
        result = await self.call("web/search", query="record")
        self.tell.line(f"that call in the record, trace {result.trace_id}:")
        roots = await self.trace(result.trace_id)
        self.promise("the record holds that call as a tree", roots and roots[0].children)
        self.tell.line(f"record: {self.stage.state_dir} (decisions and traces, OTLP JSON lines)")


SHOWN = (
    "observant_host_peer_era",
    "observant_host_peer_unavailable",
    "observant_host_peer_restarts_total",
    'observant_host_calls_total{fault="none"',
)
"""Metrics of the excerpt: who is what, who is down and why, what restarted, what was called."""


def excerpt(metrics: str) -> list[str]:
    """The samples that the story was about: those that are not 0."""
    return [
        line
        for line in metrics.splitlines()
        if line.startswith(SHOWN) and not line.endswith((" 0", " 0.0"))
    ]
