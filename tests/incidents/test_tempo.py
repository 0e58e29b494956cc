"""Incidents out of a Tempo: a stand-in of its documented API, with what three hosts exported."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from observant_host.errors import HostError
from observant_host.incidents import tempo
from observant_host.incidents.answer import Question, Sources, incidents
from observant_host.incidents.otlp import spans_of_line
from tests.incidents.test_week import EXPECTED, WEEK, by_name, classes
from tests.incidents.week import SECOND, lines_of, record_week

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from observant_host.incidents.otlp import RecordedSpan

PEER = "observant_host.peer.name"


class StandIn:
    """`GET /api/search` and `GET /api/traces/<id>`; ids in base64, as Tempo's JSON has them."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines: defaultdict[str, list[bytes]] = defaultdict(list)
        self.spans: list[RecordedSpan] = []
        for line in (one for each in lines for one in _one_by_one(each)):
            (span,) = spans_of_line(line)
            self.lines[span.trace_id].append(line)
            self.spans.append(span)
        self.searches: list[dict[str, str]] = []
        self.status = 200

    async def search(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        self.searches.append(asked)
        if self.status != 200:
            return web.Response(status=self.status, text="too many outstanding requests")
        about = "observant_host.call" in asked["q"]
        since, until = (int(asked[key]) * SECOND for key in ("start", "end"))
        found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for span in self.spans:
            wanted = (
                span.name == "observant_host.call" and f'"{span.attributes[PEER]}"' in asked["q"]
                if about
                else span.name.startswith("observant_host.") and span.name != "observant_host.call"
            )
            if wanted and since <= span.start_ns < until:
                found[span.trace_id].append(_found(span))
        limit, per = int(asked["limit"]), int(asked["spss"])
        traces = [
            {
                "traceID": trace_id.lstrip("0"),
                "rootServiceName": "observant-host",
                "spanSets": [{"spans": spans[:per], "matched": len(spans)}],
            }
            for trace_id, spans in list(found.items())[:limit]
        ]
        return web.json_response({"traces": traces, "metrics": {"inspectedBytes": "1"}})

    async def trace(self, request: web.Request) -> web.Response:
        lines = self.lines.get(request.match_info["id"].rjust(32, "0"))
        if lines is None:
            return web.Response(status=404, text="trace not found")
        return web.json_response({"batches": [part for line in lines for part in _batches(line)]})


def _found(span: RecordedSpan) -> dict[str, Any]:
    shown = ("observant_host.outcome", "observant_host.peer.era")
    attributes = {key: str(span.attributes.get(key, "")) for key in shown}
    attributes["service.instance.id"] = span.instance
    return {
        "spanID": span.span_id,
        "startTimeUnixNano": str(span.start_ns),
        "durationNanos": str(span.end_ns - span.start_ns),
        "attributes": [
            {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
        ],
    }


def _one_by_one(line: bytes) -> Iterator[bytes]:
    """A line for each of its spans."""
    (part,) = json.loads(line)["resourceSpans"]
    (scope,) = part["scopeSpans"]
    for span in scope["spans"]:
        alone = {**part, "scopeSpans": [{**scope, "spans": [span]}]}
        yield json.dumps({"resourceSpans": [alone]}).encode()


def _batches(line: bytes) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = json.loads(line)["resourceSpans"]
    for part in parts:
        for span in part["scopeSpans"][0]["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
            span["kind"] = "SPAN_KIND_INTERNAL"
    return parts


@pytest.fixture
async def stand_in(tmp_path: Path) -> AsyncIterator[tuple[str, StandIn]]:
    folders = await record_week(tmp_path)
    stand_in = StandIn(lines_of(folders))
    app = web.Application()
    app.router.add_get("/tempo/api/search", stand_in.search)
    app.router.add_get("/tempo/api/traces/{id}", stand_in.trace)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}/tempo/", stand_in
    await runner.cleanup()


async def asked(url: str, question: Question = WEEK) -> dict[str, Any]:
    return await asyncio.to_thread(incidents, Sources(tempo=url), question)


async def test_a_tempo_says_the_same_as_the_hosts_folders(stand_in: tuple[str, StandIn]) -> None:
    url, tempo_of = stand_in
    found = await asked(url)
    assert classes(found) == EXPECTED
    assert found["complete"] is True
    told = by_name(found)
    assert told["downgrade", "billing", "c"]["calls"] == {"ok": 5, "tool_error": 2}
    assert told["outage", "forecast", "b"]["calls"] == {"unavailable": 2}
    assert all(int(one["end"]) - int(one["start"]) <= tempo.SLICE_S for one in tempo_of.searches)


async def test_a_search_that_is_cut_off_is_asked_in_halves_and_said_where_that_does_not_help(
    stand_in: tuple[str, StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, tempo_of = stand_in
    monkeypatch.setattr(tempo, "LIMIT", 20)
    found = await asked(url)
    spans = [int(one["end"]) - int(one["start"]) for one in tempo_of.searches]
    assert min(spans) <= tempo.SHORTEST_S
    assert found["complete"] is False, "more happened in a minute than a search lists"
    monkeypatch.setattr(tempo, "LIMIT", 500)
    monkeypatch.setattr(tempo, "MAX_TRACES", 3)
    assert (await asked(url))["complete"] is False


async def test_a_tempo_that_refuses_or_is_none_is_named_with_what_it_said(
    stand_in: tuple[str, StandIn],
) -> None:
    url, tempo_of = stand_in
    tempo_of.status = 429
    with pytest.raises(HostError, match=r"HTTP 429: too many outstanding requests"):
        await asked(url)
    with pytest.raises(HostError, match=r"127\.0\.0\.1:1 cannot be asked"):
        await asked("http://127.0.0.1:1")
    with pytest.raises(HostError, match="give the URL of a Tempo"):
        await asked("file:///etc/passwd")


async def test_what_is_no_answer_of_a_tempo_is_said_to_be_none() -> None:
    async def nonsense(_: web.Request) -> web.Response:
        return web.Response(text="<html>")

    app = web.Application()
    app.router.add_get("/api/search", nonsense)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    with pytest.raises(HostError, match="gave no answer of a Tempo"):
        await asked(f"http://127.0.0.1:{runner.addresses[0][1]}")
    await runner.cleanup()
