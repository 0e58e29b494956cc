"""Pages, cursors, names and instructions of what agents are shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from observant_host.decisions.cursors import cursor_at, end_of_page, offset_of, tag_of
from observant_host.decisions.exposing import exposed_prompt, exposed_tool
from observant_host.decisions.instructions import (
    MAX_LINE_CHARS,
    MAX_LINES,
    Absent,
    instructions,
)
from observant_host.wire.mirrored_headers import Mirrored

TAG = tag_of("tools", "sha256:x")


def test_a_walk_over_the_pages_gives_everything_once() -> None:
    sizes = [10] * 7
    starts, at = [], 0
    while at < len(sizes):
        starts.append(at)
        at = end_of_page(sizes, at, items=3)
    assert starts == [0, 3, 6]


def test_a_page_is_bounded_by_bytes_and_holds_at_least_one_entry() -> None:
    assert end_of_page([5, 5, 5], 0, most_bytes=10) == 2
    assert end_of_page([50, 5], 0, most_bytes=10) == 1
    assert end_of_page([], 0) == 0


def test_a_cursor_leads_back_to_its_place() -> None:
    assert offset_of(cursor_at(TAG, 3), TAG, 7) == 3


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "x", 3, None, cursor_at(TAG, 0), cursor_at(TAG, 7), cursor_at(TAG, 8)),
        cursor_at(tag_of("prompts", "sha256:x"), 3),
        cursor_at(tag_of("tools", "sha256:y"), 3),
        cursor_at(TAG, 3) + "\n",
    ],
)
def test_a_cursor_of_another_list_or_none_at_all_is_lost(cursor: Any) -> None:
    assert offset_of(cursor, TAG, 7) is None


TOOL = (
    b'{ "name": "a/b", "description": "d\\u00fc", "inputSchema": {"type":"object",'
    b' "properties": {"n": {"type": "integer", "maximum": 1e400}}},\n "_meta": {"x": 1.0} }'
)


def test_under_its_own_name_a_tool_is_its_servers_bytes() -> None:
    assert exposed_tool(Raw(TOOL), "a/b", "a/b").raw == Raw(TOOL)
    plain = Raw(b'{"name":"t","inputSchema":{}}')
    assert exposed_tool(plain, "t", "t").raw == plain
    assert msgspec.json.decode(exposed_tool(plain, "u", "t").raw)["name"] == "u"
    assert exposed_prompt(Raw(b'{"name":"p"}'), "p", "p").raw == Raw(b'{"name":"p"}')


def test_under_another_name_all_else_stays_byte_for_byte() -> None:
    exposed = exposed_tool(Raw(TOOL), "a_b_1", "a/b").raw
    assert bytes(exposed).startswith(b'{"name":"a_b_1","description":"d\\u00fc"')
    assert b'"maximum": 1e400' in bytes(exposed)
    assert b'{"x": 1.0}' in bytes(exposed)
    assert msgspec.json.decode(exposed_prompt(Raw(b'{"name":"p"}'), "q", "p").raw) == {"name": "q"}


def tool(schema: dict[str, Any]) -> Raw:
    return Raw(msgspec.json.encode({"name": "t", "inputSchema": schema}))


def test_annotations_that_clients_accept_stay_and_are_known() -> None:
    schema = {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}
    exposed = exposed_tool(tool(schema), "t", "t")
    assert exposed.raw == tool(schema)
    assert exposed.mirrored == (Mirrored("Mcp-Param-Region", ("r",), "string"),)
    assert exposed_tool(tool(schema), "s/t", "t").mirrored == exposed.mirrored


def test_annotations_that_would_cost_the_whole_tool_are_taken_out() -> None:
    schema = {
        "type": "object",
        "properties": {"r": {"type": "number", "x-mcp-header": "R"}},
        "anyOf": [{"x-mcp-header": "S", "required": ["r"]}],
    }
    exposed = exposed_tool(tool(schema), "t", "t")
    assert exposed.mirrored == ()
    assert msgspec.json.decode(exposed.raw)["inputSchema"] == {
        "type": "object",
        "properties": {"r": {"type": "number"}},
        "anyOf": [{"required": ["r"]}],
    }


def test_where_everything_is_there_nothing_is_said() -> None:
    assert instructions([]) is None


def test_each_missing_server_has_one_bounded_line_and_all_of_them_an_end() -> None:
    absent = [Absent(f"s{i}", "backoff", "process", "it\nexited " * 99) for i in range(25)]
    text = instructions(absent)
    assert text is not None
    lines = text.splitlines()
    assert len(lines) == 1 + MAX_LINES + 1
    assert all(len(line) <= MAX_LINE_CHARS for line in lines)
    assert lines[1].startswith("- s0 is backoff (process): it exited it")
    assert lines[-1] == "- and 5 more"
    assert instructions([Absent("s", "starting", None, "")]) == (
        text.splitlines()[0] + "\n- s is starting"
    )
