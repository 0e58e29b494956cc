"""What each legacy revision is shown, judged by its published schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from observant_host.wire.legacy_shapes import BLOCKS, ENTRIES, LISTED, NEVER, shaped
from observant_host.wire.revisions import LEGACY
from tests.support.published import defined, result_problems

TOOL = {
    "name": "look",
    "title": "Look",
    "description": "d",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
    "icons": [{"src": "https://x.example/i.png"}],
    "execution": {"taskSupport": "optional"},
    "_meta": {"a": 1},
    "unknown": 5,
}
PROMPT = {
    "name": "p",
    "title": "P",
    "icons": [],
    "_meta": {},
    "arguments": [{"name": "a", "title": "A", "required": True}],
}
RESOURCE = {"name": "r", "uri": "x://r", "title": "R", "icons": [], "_meta": {"k": 1}, "size": 3}
TEMPLATE = {"name": "t", "uriTemplate": "x://{a}", "title": "T", "icons": [], "_meta": {}}
EXAMPLES = {"tools": TOOL, "prompts": PROMPT, "resources": RESOURCE, "resourceTemplates": TEMPLATE}
DEFINITIONS = {
    "tools": "Tool",
    "prompts": "Prompt",
    "resources": "Resource",
    "resourceTemplates": "ResourceTemplate",
}
ALL_CONTENT = [
    {"type": "text", "text": "t", "_meta": {"io.modelcontextprotocol/x": 1, "own": 2}},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {
        "type": "resource_link",
        "uri": "x://r",
        "name": "r",
        "description": "the r",
        "icons": [{"src": "https://x.example/i.png"}],
    },
    {"type": "resource", "resource": {"uri": "x://r", "text": "t"}},
]


def changed(method: str, result: dict[str, Any], revision: str) -> dict[str, Any]:
    return json.loads(bytes(shaped(method, json.dumps(result).encode(), revision)))


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("method", LISTED)
def test_an_entry_has_the_members_of_its_revision_and_keeps_unknown_ones(
    method: str, revision: str
) -> None:
    kind = LISTED[method]
    result = {"resultType": "complete", "ttlMs": 5, "cacheScope": "public", kind: [EXAMPLES[kind]]}
    shown = changed(method, {**result, "nextCursor": "n"}, revision)

    assert set(shown) == {kind, "nextCursor"}
    known = set(defined(revision, DEFINITIONS[kind])["properties"]) - {"execution"}
    assert set(shown[kind][0]) == set(EXAMPLES[kind]) & (known | {"unknown"})
    assert result_problems(method, shown, revision) == []
    for argument in shown[kind][0].get("arguments", []):
        assert set(argument) <= set(defined(revision, "PromptArgument")["properties"])


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("kind", ENTRIES)
def test_the_table_says_of_each_member_what_the_schemas_say(kind: str, revision: str) -> None:
    properties = defined(revision, DEFINITIONS[kind])["properties"]
    for member, since in ENTRIES[kind].items():
        if since != NEVER and member != "annotations":
            assert (member in properties) == (since <= revision), member
    if kind == "tools":
        assert ("annotations" in properties) == (ENTRIES["tools"]["annotations"] <= revision)


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(("method", "where"), [("tools/call", "content"), ("prompts/get", "m")])
def test_content_that_a_revision_does_not_have_is_said_in_text(
    method: str, where: str, revision: str
) -> None:
    if where == "content":
        result: dict[str, Any] = {"content": ALL_CONTENT}
    else:
        result = {"messages": [{"role": "user", "content": one} for one in ALL_CONTENT]}
    shown = changed(method, {"resultType": "complete", **result}, revision)
    blocks = shown["content"] if where == "content" else [m["content"] for m in shown["messages"]]

    kinds = [block["type"] for block in blocks]
    expected = [one["type"] for one in ALL_CONTENT]
    assert kinds == ["text" if BLOCKS.get(one, "") > revision else one for one in expected]
    assert result_problems(method, shown, revision) == []
    if revision < "2025-06-18":
        assert blocks[3] == {"type": "text", "text": "r: x://r: the r"}
        assert "_meta" not in blocks[0]
    else:
        assert blocks[0]["_meta"] == {"own": 2}
    if revision == "2024-11-05":
        assert "audio/wav" in blocks[2]["text"]


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], 7, None])
def test_structured_content_is_an_object_or_told_as_text(revision: str, value: object) -> None:
    shown = changed("tools/call", {"content": [], "structuredContent": value}, revision)
    if isinstance(value, dict) and revision >= "2025-06-18":
        assert shown == {"content": [], "structuredContent": value}
    else:
        assert shown == {"content": [{"type": "text", "text": json.dumps(value)}]}
    assert result_problems("tools/call", shown, revision) == []


def test_text_beside_structured_content_is_not_repeated() -> None:
    block = {"type": "text", "text": "t"}
    given = {"content": [block], "structuredContent": [1]}
    assert changed("tools/call", given, "2024-11-05") == {"content": [block]}


@pytest.mark.parametrize("schema", [{"type": "array"}, {"anyOf": []}, True])
def test_an_output_schema_of_anything_but_an_object_is_not_shown(schema: object) -> None:
    tool = {"name": "n", "inputSchema": {"type": "object"}, "outputSchema": schema}
    assert "outputSchema" not in changed("tools/list", {"tools": [tool]}, LEGACY[0])["tools"][0]


def test_what_has_no_newer_word_passes_as_it_is() -> None:
    raw = Raw(b'{"content":[{"type":"text","text":"1e400 is \\u0041"}],"odd":1.50}')
    assert shaped("tools/call", raw, "2025-11-25") is raw


@pytest.mark.parametrize(
    "broken", [b'["resultType"]', b'{"resultType":', b'{"content":5,"ttlMs":1}']
)
def test_what_is_no_result_passes_as_it_is(broken: bytes) -> None:
    assert shaped("tools/call", broken, "2025-11-25") == broken


def test_results_without_their_members_stay_without() -> None:
    assert changed("tools/list", {"resultType": "complete"}, LEGACY[0]) == {"tools": []}
    assert changed("prompts/get", {"resultType": "complete"}, LEGACY[0]) == {}
    assert changed("tools/call", {"resultType": "complete"}, LEGACY[0]) == {"content": []}
    message = {"messages": [{"role": "user"}], "ttlMs": 1}
    assert changed("prompts/get", message, LEGACY[0]) == {"messages": [{"role": "user"}]}
    assert changed("tools/call", {"content": [{}], "ttlMs": 1}, LEGACY[0]) == {"content": [{}]}
    odd = {"content": [{"type": "resource_link"}, {"type": "audio"}], "ttlMs": 1}
    texts = [block["text"] for block in changed("tools/call", odd, "2024-11-05")["content"]]
    assert texts == ["", "[audio, ?: this client's protocol has no audio]"]


@pytest.mark.parametrize("revision", LEGACY)
def test_only_the_protocols_own_keys_leave_the_meta_of_a_result(revision: str) -> None:
    meta = {"io.modelcontextprotocol/serverInfo": {}, "example.com/own": 1}
    shown = changed("completion/complete", {"_meta": meta, "completion": {"values": []}}, revision)
    assert shown == {"_meta": {"example.com/own": 1}, "completion": {"values": []}}
    only = {"_meta": {"io.modelcontextprotocol/serverInfo": {}}}
    assert changed("completion/complete", only, revision) == {}


def test_a_revision_that_nobody_knows_is_shown_the_newest_legacy_shape() -> None:
    assert changed("ping", {"resultType": "complete"}, "2025-12-31") == {}
