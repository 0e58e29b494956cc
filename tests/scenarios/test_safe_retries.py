"""No side effect twice: servers that count what they execute, and go wrong after it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import Host, StdioServer
from observant_host.errors import CallTimeout, RateLimited, Unavailable
from observant_host.telemetry.vocabulary import Request, RetryDenied, RetryScheduled, RoutedCall
from tests.scenarios.http import add_url
from tests.support.hosts import PATIENCE_S, QUICK, facts, quick_host, reach
from tests.support.http_peer import Exchange, HttpPeer
from tests.support.peers import program
from tests.support.processes import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

PERHAPS = "it may have been executed; do not simply repeat it"
IDEMPOTENT: dict[str, Any] = {"retry_calls": "idempotent", "idempotent_tools": ("keep",)}


class Ledger:
    """What a server executed, by token."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def counts(self) -> Counter[str]:
        return Counter(self.path.read_text().split()) if self.path.exists() else Counter()

    async def has(self, token: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.counts()[token]:
                await asyncio.sleep(0.01)


def counting(tmp_path: Path, **keys: Any) -> tuple[Host, list[Any], Ledger]:
    host, told = quick_host()
    ledger = Ledger(tmp_path / "ledger")
    launch = StdioServer(program("counting.py", "--ledger", str(ledger.path)))
    host.add_server("s", launch, **{**QUICK, **keys})
    return host, told, ledger


def attempts(told: list[Any]) -> list[Request]:
    return [one for one in facts(told, Request) if one.purpose == "call"]


# A process


@pytest.mark.parametrize("end", ["exit", "cut"])
async def test_a_tool_whose_server_dies_after_executing_it_is_not_called_again(
    tmp_path: Path, end: str
) -> None:
    host, told, ledger = counting(tmp_path)
    async with host:
        with pytest.raises(Unavailable) as failed:
            await host.call_tool("mark", {"token": "a", "end": end})
        assert str(failed.value).endswith(PERHAPS)
        assert (failed.value.delivery, failed.value.fault) == ("sent_no_reply", "peer")
        assert failed.value.call is not None
        assert (failed.value.call.attempts, failed.value.call.era) == (1, "modern")
        assert (await host.call_tool("mark", {"token": "b"})).text == "b", "its server is back"
    assert ledger.counts() == {"a": 1, "b": 1}
    assert [one.reason for one in facts(told, RetryDenied)] == ["not_idempotent"]
    (first, _) = facts(told, RoutedCall)
    assert (first.era, first.attempts, first.delivery) == ("modern", 1, "sent_no_reply")


async def test_a_tool_that_is_declared_idempotent_is_called_once_more(tmp_path: Path) -> None:
    host, told, ledger = counting(tmp_path, **IDEMPOTENT)
    async with host:
        result = await host.call_tool("keep", {"token": "a", "end": "once:exit"})
        assert (result.text, result.attempts) == ("a", 2)
        with pytest.raises(Unavailable, match="declared idempotent"):
            await host.call_tool("keep", {"token": "b", "end": "exit"})
        with pytest.raises(Unavailable, match=PERHAPS):
            await host.call_tool("mark", {"token": "c", "end": "exit"})
    assert ledger.counts() == {"a": 2, "b": 2, "c": 1}
    assert [(one.reason, one.attempt) for one in facts(told, RetryScheduled)][:1] == [("lost", 2)]
    first, second = attempts(told)[:2]
    assert (first.attempt, second.attempt) == (1, 2)
    assert second.generation == first.generation + 1
    again = next(one for one in told if one.fact is second)
    assert [link.type for link in again.links] == ["retry_of"]


@pytest.mark.parametrize("kind", ["resource", "prompt"])
async def test_a_read_that_its_server_did_not_answer_is_read_once_more(
    tmp_path: Path, kind: str
) -> None:
    host, told, ledger = counting(tmp_path)
    async with host:
        if kind == "resource":
            result = await host.read_resource("mark:once:exit/a", server="s")
        else:
            result = await host.get_prompt("prompt", {"token": "a", "end": "once:exit"})
        assert result.attempts == 2
    assert ledger.counts() == {"a": 2}
    assert [one.reason for one in facts(told, RetryScheduled)] == ["lost"]


async def test_a_call_still_in_our_outbox_was_not_sent_and_one_in_the_pipe_was(
    tmp_path: Path,
) -> None:
    host, told, ledger = counting(tmp_path)
    async with host:
        view = await reach(host, "s", "ready")
        assert view.pid is not None
        os.kill(view.pid, signal.SIGSTOP)
        big = {"token": "begun", "pad": "x" * 300_000}  # more than a pipe holds
        begun = asyncio.ensure_future(host.call_tool("mark", big))
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(host.call_tool("mark", {"token": "waiting"}))
        async with asyncio.timeout(PATIENCE_S):
            while _open(host) < 2:
                await asyncio.sleep(0.01)
        os.kill(view.pid, signal.SIGKILL)
        with pytest.raises(Unavailable, match=PERHAPS) as failed:
            await begun
        assert failed.value.delivery == "sent_no_reply"
        result = await waiting
        assert (result.text, result.attempts) == ("waiting", 2)
    assert ledger.counts() == {"waiting": 1}, "half a line is no message"
    assert [one.reason for one in facts(told, RetryScheduled)] == ["not_sent"]


async def test_calls_in_line_when_their_server_dies_go_to_the_next_process(tmp_path: Path) -> None:
    host, told, ledger = counting(tmp_path, max_in_flight=1)
    async with host:
        view = await reach(host, "s", "ready")
        assert view.pid is not None
        first = asyncio.ensure_future(host.call_tool("mark", {"token": "in", "end": "silent"}))
        await ledger.has("in")
        tokens = [f"queued{number}" for number in range(30)]
        queued = [asyncio.ensure_future(host.call_tool("mark", {"token": t})) for t in tokens]
        gate = host.core.fleet.get("s").peer.gate  # type: ignore[union-attr]  # it is configured
        await eventually(lambda: gate.queued == len(tokens))
        os.kill(view.pid, signal.SIGKILL)
        with pytest.raises(Unavailable, match=PERHAPS):
            await first
        results = await asyncio.gather(*queued)
        assert [(one.text, one.attempts) for one in results] == [(token, 1) for token in tokens]
    assert ledger.counts() == {"in": 1, **dict.fromkeys(tokens, 1)}
    assert {one.reason for one in facts(told, RetryScheduled)} == {"not_sent"}


async def test_a_busy_principal_keeps_no_other_from_its_turn(tmp_path: Path) -> None:
    host, _, ledger = counting(tmp_path, max_in_flight=1)
    async with host:
        first = host.call_tool("mark", {"token": "first", "end": "slow"}, principal="busy")
        running = [asyncio.ensure_future(first)]
        await ledger.has("first")
        for number in range(40):
            call = host.call_tool("mark", {"token": f"busy{number}"}, principal="busy")
            running.append(asyncio.ensure_future(call))
        await asyncio.sleep(0)
        for name in ("one", "two"):
            call = host.call_tool("mark", {"token": name}, principal="other")
            running.append(asyncio.ensure_future(call))
        await asyncio.gather(*running)
    order = ledger.path.read_text().split()
    assert order[:5] == ["first", "busy0", "one", "busy1", "two"]
    assert order[5:] == [f"busy{number}" for number in range(2, 40)]


async def test_a_tool_that_timed_out_is_not_called_again_and_says_so(tmp_path: Path) -> None:
    host, _, ledger = counting(tmp_path, **IDEMPOTENT)
    async with host:
        with pytest.raises(CallTimeout, match=PERHAPS) as late:
            await host.call_tool("mark", {"token": "a", "end": "silent"}, deadline_s=0.5)
        assert (late.value.scope, late.value.delivery) == ("call", "sent_no_reply")
    assert ledger.counts() == {"a": 1}


# A server behind a URL


Ending = "Callable[[Exchange, Counting], Awaitable[None]]"


class Counting:
    """`ending` is how each tool call ends after it was executed; what is listed is orderly."""

    def __init__(self, ending: Callable[[Exchange, Counting], Awaitable[None]]) -> None:
        self.ending = ending
        self.executed: Counter[str] = Counter()

    async def behave(self, exchange: Exchange) -> None:
        hint = {"ttlMs": 600_000, "cacheScope": "private"}
        match exchange.seen.method:
            case "server/discover":
                able: dict[str, Any] = {"tools": {}, "resources": {}}
                offered = {"supportedVersions": ["2026-07-28"], "capabilities": able}
                await exchange.result({"resultType": "complete", **offered, **hint})
            case "resources/list":
                await exchange.result({"resultType": "complete", "resources": [], **hint})
            case "resources/templates/list":
                await exchange.result({"resultType": "complete", "resourceTemplates": [], **hint})
            case "tools/list":
                tools = [{"name": n, "inputSchema": {"type": "object"}} for n in ("mark", "keep")]
                await exchange.result({"resultType": "complete", "tools": tools, **hint})
            case "tools/call" | "resources/read":
                await self.ending(exchange, self)
            case _:
                await exchange.empty(202)

    def execute(self, exchange: Exchange) -> int:
        """Counts it; how often this token was executed by now."""
        params = exchange.seen.message["params"]
        token = params.get("arguments", {}).get("token") or params.get("uri")
        self.executed[token] += 1
        return self.executed[token]

    async def answered(self, exchange: Exchange) -> None:
        read = exchange.seen.method == "resources/read"
        told: dict[str, Any] = {"contents": []} if read else {"content": []}
        await exchange.result(
            {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **told}
        )


async def failed(exchange: Exchange, web: Counting) -> None:
    web.execute(exchange)
    await exchange.empty(500)


async def reset(exchange: Exchange, web: Counting) -> None:
    web.execute(exchange)
    exchange.cut(reset=True)


async def cut_in_the_body(exchange: Exchange, web: Counting) -> None:
    web.execute(exchange)
    await exchange.head(200, "application/json", Content_Length=500)
    await exchange.raw(b'{"jsonrpc": "2.0", ')
    exchange.cut()


async def cut_in_the_stream(exchange: Exchange, web: Counting) -> None:
    web.execute(exchange)
    await exchange.stream()
    await exchange.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    exchange.cut()


async def ended_without_response(exchange: Exchange, web: Counting) -> None:
    web.execute(exchange)
    await exchange.stream()
    await exchange.end()


ENDINGS = [failed, reset, cut_in_the_body, cut_in_the_stream, ended_without_response]


def once(ending: Callable[[Exchange, Counting], Awaitable[None]]) -> Any:
    """The first call ends so, every other is answered."""

    async def first_only(exchange: Exchange, web: Counting) -> None:
        if sum(web.executed.values()) == 0:
            await ending(exchange, web)
        else:
            web.execute(exchange)
            await web.answered(exchange)

    return first_only


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_tool_that_was_executed_and_not_answered_is_not_called_again(
    ending: Callable[[Exchange, Counting], Awaitable[None]],
) -> None:
    web = Counting(once(ending))
    host, told = quick_host()
    async with HttpPeer(web.behave) as peer:
        add_url(host, "s", peer.url, **IDEMPOTENT)
        async with host:
            with pytest.raises(Unavailable, match=PERHAPS) as lost:
                await host.call_tool("mark", {"token": "a"})
            assert lost.value.delivery == "sent_no_reply"
            await host.call_tool("mark", {"token": "b"})
    assert web.executed == {"a": 1, "b": 1}
    assert [one.reason for one in facts(told, RetryDenied)] == ["not_idempotent"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", ["tool", "resource"])
async def test_what_is_harmless_is_sent_once_more(
    ending: Callable[[Exchange, Counting], Awaitable[None]], kind: str
) -> None:
    web = Counting(once(ending))
    host, told = quick_host()
    async with HttpPeer(web.behave) as peer:
        add_url(host, "s", peer.url, **IDEMPOTENT)
        async with host:
            if kind == "tool":
                result = await host.call_tool("keep", {"token": "a"})
            else:
                result = await host.read_resource("u:a", server="s")
            assert result.attempts == 2
    assert list(web.executed.values()) == [2]
    assert [one.reason for one in facts(told, RetryScheduled)] == ["lost"]


async def test_a_refusal_for_rate_is_waited_out_and_holds_the_other_calls_back() -> None:
    came: list[str] = []

    async def busy(exchange: Exchange, web: Counting) -> None:
        came.append(exchange.seen.message["params"]["arguments"]["token"])
        if len(came) == 1:
            await exchange.json(
                {"jsonrpc": "2.0", "id": exchange.id, "error": {"code": -32000, "message": "slow"}},
                429,
                Retry_After=3,
            )
        else:
            web.execute(exchange)
            await web.answered(exchange)

    web = Counting(busy)
    host, told = quick_host()
    async with HttpPeer(web.behave) as peer:
        add_url(host, "s", peer.url)
        async with host:
            first = asyncio.ensure_future(host.call_tool("mark", {"token": "a"}, deadline_s=30))
            await peer.until(lambda _: came)
            async with asyncio.timeout(PATIENCE_S):
                while not facts(told, Request) or not _refused(told):
                    await asyncio.sleep(0.01)
            with pytest.raises(RateLimited, match=r"left alone.*nothing was executed"):
                await host.call_tool("mark", {"token": "hasty"}, deadline_s=0.2)
            assert (await host.call_tool("mark", {"token": "b"}, deadline_s=30)).attempts == 1
            assert (await first).attempts == 2
    assert web.executed == {"a": 1, "b": 1}
    assert came.count("hasty") == 0
    assert [one.reason for one in facts(told, RetryScheduled)] == ["rate_limited"]


async def test_a_server_that_cannot_be_reached_was_sent_nothing_and_gets_the_call_when_it_is_back(
    tmp_path: Path,
) -> None:
    async def fine(exchange: Exchange, web: Counting) -> None:
        web.execute(exchange)
        await web.answered(exchange)

    web = Counting(fine)
    host, told = quick_host()
    peer = HttpPeer(web.behave)
    async with peer:
        add_url(host, "s", peer.url)
        async with host:
            port = peer.port
            await peer.stop()
            calling = asyncio.ensure_future(host.call_tool("mark", {"token": "a"}))
            async with asyncio.timeout(PATIENCE_S):
                while not _refused(told):
                    await asyncio.sleep(0.01)
            back = HttpPeer(web.behave)
            back._server = await asyncio.start_server(back._connection, "127.0.0.1", port)
            try:
                result = await calling
                assert result.attempts == 2
            finally:
                await back.stop()
    assert web.executed == {"a": 1}
    assert [one.reason for one in facts(told, RetryScheduled)] == ["not_sent"]


def _refused(told: list[Any]) -> bool:
    """An attempt has failed."""
    calls = [one for one in told if isinstance(one.fact, Request) and one.fact.purpose == "call"]
    return any(one.outcome != "ok" for one in calls)


def _open(host: Host) -> int:
    """Requests that wait for their answer."""
    core = host._core
    assert core is not None
    found = core.fleet.get("s")
    assert found is not None
    life = found.peer.life
    return life.open_requests if life is not None else 0
