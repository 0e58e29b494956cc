"""Structured content is compared with what its tool promised, and shown whatever comes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import Raw

from observant_host.decisions.catalogue import ListedTool
from observant_host.errors import InvalidCall
from observant_host.routing.structured import structured_problem
from observant_host.telemetry.vocabulary import StructuredContentProblem
from tests.decisions.catalogues import up
from tests.routing.bench import Bench
from tests.routing.peers import ScriptedPeer, reply

if TYPE_CHECKING:
    from observant_host.peers.peer import CallReply
    from observant_host.routing.call_result import CallResult

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


async def called(
    answer: CallReply, schema: Any = SCHEMA, *, name: str = "search"
) -> tuple[CallResult, Bench]:
    tool = ListedTool(name, raw({"name": name}), output_schema=raw(schema))
    bench = Bench(ScriptedPeer("a", answer), views=[up("a", tool)])
    return await bench.router.call_tool(name), bench


async def test_a_result_that_keeps_its_promise_says_nothing() -> None:
    result, bench = await called(reply({"content": [], "structuredContent": {"n": 1}}))
    assert result.schema_problem is None
    assert bench.facts(StructuredContentProblem) == []
    assert result.to_json()["schema_problem"] is None


@pytest.mark.parametrize(
    ("content", "schema", "kind"),
    [
        ({"structuredContent": {"n": "1"}}, SCHEMA, "mismatch"),
        ({"structuredContent": None}, SCHEMA, "mismatch"),
        ({}, SCHEMA, "missing"),
        ({"structuredContent": {"n": 1}}, {"$schema": "urn:mine"}, "unusable_schema"),
        ({"structuredContent": {}}, {"$ref": "http://127.0.0.1:9/x"}, "unusable_schema"),
    ],
)
async def test_a_broken_promise_is_told_beside_the_content_and_counted(
    content: Any, schema: Any, kind: str
) -> None:
    result, bench = await called(reply({"content": [], **content}), schema)
    assert result.outcome == "ok"
    assert result.schema_problem is not None
    assert result.schema_problem.kind == kind
    assert result.data == {"content": [], **content}
    (fact,) = bench.facts(StructuredContentProblem)
    assert (fact.peer, fact.tool, fact.problem) == ("a", "search", kind)
    said = json.loads(msgspec.json.encode(result.to_json()))
    assert said["schema_problem"]["kind"] == kind
    assert said["result"] == result.data


async def test_a_tools_own_error_promised_nothing() -> None:
    result, bench = await called(reply({"content": [], "isError": True}, is_error=True))
    assert result.schema_problem is None
    assert bench.facts(StructuredContentProblem) == []


@pytest.mark.parametrize(
    ("version", "judged"),
    [
        ("2024-11-05", False),
        ("2025-03-26", False),
        ("2025-06-18", True),
        ("2025-11-25", True),
        ("2026-07-28", True),
    ],
)
async def test_older_revisions_know_no_structured_content(version: str, judged: bool) -> None:
    problem = await structured_problem(raw(SCHEMA), raw({"content": []}), version=version)
    assert (problem is not None) is judged


async def test_large_content_is_judged_as_well() -> None:
    schema = raw({"type": "array", "items": {"type": "integer"}})
    fits = raw({"structuredContent": list(range(20_000))})
    breaks = raw({"structuredContent": [*range(20_000), "x"]})
    assert await structured_problem(schema, fits, version="2026-07-28") is None
    problem = await structured_problem(schema, breaks, version="2026-07-28")
    assert problem is not None
    assert problem.kind == "mismatch"


async def test_small_content_with_much_work_is_judged_aside() -> None:
    item = {"anyOf": [{"type": "integer"}] * 20}
    schema = raw({"type": "array", "items": item})
    for last, kind in ((1, None), ("x", "mismatch")):
        content = raw({"structuredContent": [*range(1000), last]})
        problem = await structured_problem(schema, content, version="2026-07-28")
        assert (None if problem is None else problem.kind) == kind


async def test_a_result_that_cannot_be_decoded_is_not_judged() -> None:
    assert await structured_problem(raw(SCHEMA), Raw(b"[1]"), version="2026-07-28") is None


async def test_a_level_that_the_protocol_does_not_have_is_refused_unsent() -> None:
    bench = Bench(peer := ScriptedPeer("a"))
    with pytest.raises(InvalidCall, match="log_level"):
        await bench.router.call_tool("search", log_level="loud")
    assert peer.calls == []
    await bench.router.call_tool("search", log_level="notice")
    assert peer.calls[0]["log_level"] == "notice"
