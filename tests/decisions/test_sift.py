"""One bad entry loses that entry, with its reason; the others stay, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from observant_host.config import ToolFilter
from observant_host.decisions.sift import (
    MAX_NAME_CHARS,
    SiftedTools,
    is_allowed,
    sift_prompts,
    sift_resources,
    sift_tools,
)
from observant_host.wire.mirrored_headers import Mirrored, annotations_of


def raws(*items: Any) -> list[Raw]:
    return [Raw(json.dumps(item).encode()) for item in items]


def problem(schema: Raw | None) -> str | None:
    return "bad" if schema is None or bytes(schema) == b"null" else None


def sift(*items: Any, tools: ToolFilter | None = None) -> SiftedTools:
    return sift_tools("s", raws(*items), tool_filter=tools or ToolFilter(), schema_problem=problem)


def tool(name: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {}, **more}


def test_good_tools_are_kept_in_order_with_what_they_say_of_themselves() -> None:
    kept = sift(
        tool("a", title="A", description="does a", annotations={"readOnlyHint": True}),
        tool("b", annotations={"title": "B", "idempotentHint": False}),
        tool("c", annotations="odd", title=5, execution={"taskSupport": "required"}),
    ).kept
    assert [t.name for t in kept] == ["a", "b", "c"]
    a, b, c = kept
    assert (a.title, a.description, a.read_only, a.idempotent) == ("A", "does a", True, None)
    assert (b.title, b.read_only, b.idempotent, b.task_required) == ("B", None, False, False)
    assert (c.title, c.task_required) == (None, True)


def test_the_servers_object_is_kept_byte_for_byte() -> None:
    data = Raw(b'{ "x-unknown": 1.10, "name":"a",\t"inputSchema":{} }')
    kept = sift_tools("s", [data], tool_filter=ToolFilter(), schema_problem=problem).kept
    assert bytes(kept[0].raw) == bytes(data)


@pytest.mark.parametrize(
    "entry",
    [None, 5, "x", [], {}, tool(None), tool(7), tool(""), tool("n" * (MAX_NAME_CHARS + 1))],
)
def test_an_entry_without_a_usable_name_loses_only_itself(entry: Any) -> None:
    sifted = sift(entry, tool("good"))
    assert [t.name for t in sifted.kept] == ["good"]
    (lost,) = sifted.excluded
    assert lost.reason == "invalid_name"
    assert lost.detail.startswith("entry 1 of the tool list")
    assert len(lost.local_name) <= 128


def test_bytes_that_are_no_json_lose_only_themselves() -> None:
    broken = [Raw(b'{"name":"\\ud800","inputSchema":{}}'), Raw(b"{"), Raw(b"[" * 9000)]
    sifted = sift_tools("s", broken, tool_filter=ToolFilter(), schema_problem=problem)
    assert sifted.kept == ()
    assert len(sifted.excluded) == 3


def test_a_member_that_cannot_be_decoded_costs_only_itself() -> None:
    odd = Raw(b'{"name":"b","inputSchema":{},"title":1e999,"annotations":{"title":1e999}}')
    sifted = sift_tools("s", [odd], tool_filter=ToolFilter(), schema_problem=problem)
    assert [(t.name, t.title) for t in sifted.kept] == [("b", None)]


def test_the_second_of_two_entries_of_one_name_is_excluded() -> None:
    sifted = sift(tool("a", title="first"), tool("a", title="second"))
    assert [t.title for t in sifted.kept] == ["first"]
    assert [(e.local_name, e.reason) for e in sifted.excluded] == [("a", "duplicate_in_server")]


def test_a_bad_schema_loses_the_tool_with_the_sentence_why() -> None:
    sifted = sift({"name": "a"}, tool("b", inputSchema=None), tool("c"))
    assert [t.name for t in sifted.kept] == ["c"]
    assert {(e.local_name, e.reason, e.detail) for e in sifted.excluded} == {
        ("a", "invalid_schema", "bad"),
        ("b", "invalid_schema", "bad"),
    }


def test_a_tool_that_is_not_allowed_is_denied_before_its_schema_is_looked_at() -> None:
    sifted = sift({"name": "drop_db"}, tool("get"), tools=ToolFilter(deny=("drop_*",)))
    assert [t.name for t in sifted.kept] == ["get"]
    assert [(e.local_name, e.reason) for e in sifted.excluded] == [("drop_db", "denied")]


@pytest.mark.parametrize(
    ("name", "allow", "deny", "allowed"),
    [
        ("a", (), (), True),
        ("a", ("a",), (), True),
        ("A", ("a",), (), False),
        ("b", ("a*",), (), False),
        ("ab", ("a*",), ("*b",), False),
    ],
)
def test_deny_wins_and_an_empty_allow_allows_all(
    name: str, allow: tuple[str, ...], deny: tuple[str, ...], *, allowed: bool
) -> None:
    assert is_allowed(name, ToolFilter(allow, deny)) is allowed


def test_prompts_and_resources_are_sifted_alike() -> None:
    prompts = sift_prompts("s", raws({"name": "p"}, {"name": "p"}, {}))
    assert [p.name for p in prompts.kept] == ["p"]
    assert {e.kind for e in prompts.excluded} == {"prompt"}

    resources = sift_resources("s", raws({"uri": "file:///a"}, {"uri": "u" * 9000}, {"name": "x"}))
    assert [(r.uri, r.is_template) for r in resources.kept] == [("file:///a", False)]
    assert [e.reason for e in resources.excluded] == ["invalid_name", "invalid_name"]

    templates = sift_resources("s", raws({"uriTemplate": "file:///{x}"}), templates=True)
    assert [(r.uri, r.is_template) for r in templates.kept] == [("file:///{x}", True)]


def test_a_tool_whose_header_annotations_are_wrong_is_left_out_where_there_are_headers() -> None:
    def region(kind: str) -> dict[str, Any]:
        return {"properties": {"r": {"type": kind, "x-mcp-header": "Region"}}}

    items = raws(
        tool("good", inputSchema=region("string")), tool("bad", inputSchema=region("number"))
    )
    sifted = sift_tools(
        "s",
        items,
        tool_filter=ToolFilter(),
        schema_problem=problem,
        annotations=annotations_of,
    )
    (good,) = sifted.kept
    assert good.mirrored == (Mirrored("Mcp-Param-Region", ("r",), "string"),)
    (bad,) = sifted.excluded
    assert (bad.local_name, bad.reason) == ("bad", "invalid_header_annotation")
    assert "type number" in bad.detail
    on_a_pipe = sift_tools("s", items, tool_filter=ToolFilter(), schema_problem=problem)
    assert [one.name for one in on_a_pipe.kept] == ["good", "bad"]
    assert on_a_pipe.kept[0].mirrored == ()
