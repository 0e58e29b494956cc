"""What models of two APIs are shown, ask for and are given, as plain values."""

from __future__ import annotations

import json
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.decisions.model_formats import (
    Answer,
    ToolCall,
    answers_for,
    as_message,
    calls_in,
    plain,
    text_of,
    tools_for,
)
from observant_host.decisions.tool_content import Document, Picture, Sound, Text, parts_of
from tests.decisions.catalogues import catalogue, down, tool, up

if TYPE_CHECKING:
    from observant_host.decisions.model_formats import Format

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


def test_routable_tools_are_shown_under_names_that_the_api_takes() -> None:
    views = [
        up("a", tool("web.search", description="Search.", inputSchema=SCHEMA), "bare"),
        down(up("b", "gone")),
    ]
    offered = catalogue(*views)
    anthropic, openai = tools_for(offered, "anthropic"), tools_for(offered, "openai")
    assert len(anthropic) == len(openai) == 2
    assert {"type": "object"} in [one["input_schema"] for one in anthropic]
    assert SCHEMA in [one["input_schema"] for one in anthropic]
    for old, new in zip(anthropic, openai, strict=True):
        assert set(old["name"]) <= set("abcdefghijklmnopqrstuvwxyz_-0123456789")
        assert new == {
            "type": "function",
            "function": {
                "name": old["name"],
                "description": old["description"],
                "parameters": old["input_schema"],
            },
        }


TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        ({"content": [TEXT, IMAGE]}, (Text("hello"), Picture("image/png", "aGk="))),
        (
            {"content": [{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]},
            (Sound("audio/wav", "aGk="),),
        ),
        ({}, (Text("(the tool answered without content)"),)),
        (
            {"content": [{"type": "text", "text": ""}]},
            (Text("(the tool answered without content)"),),
        ),
        ({"content": "odd"}, (Text("(the tool answered without content)"),)),
        ({"content": [], "structuredContent": {"a": Decimal("1e999")}}, (Text('{"a":1E+999}'),)),
        ({"content": [TEXT], "structuredContent": {"a": 1}}, (Text("hello"),)),
        (
            {"content": [IMAGE], "structuredContent": None},
            (Picture("image/png", "aGk="), Text("null")),
        ),
        ({"content": [{"type": "new"}, 7]}, (Text('{"type":"new"}'), Text("7"))),
        (
            {"content": [{"type": "resource_link", "uri": "file:///a", "name": "A"}]},
            (Text("Resource file:///a: A"),),
        ),
        (
            {"content": [{"type": "resource_link", "uri": "file:///a"}]},
            (Text("Resource file:///a"),),
        ),
    ],
)
def test_a_result_is_told_whole(result: dict[str, Any], parts: tuple[Any, ...]) -> None:
    assert parts_of(result) == parts


@pytest.mark.parametrize(
    ("resource", "part"),
    [
        ({"text": "t"}, Text("Resource file:///x/a.pdf:\nt")),
        ({"blob": "aGk=", "mimeType": "image/gif"}, Picture("image/gif", "aGk=")),
        ({"blob": "aGk=", "mimeType": "audio/mpeg"}, Sound("audio/mpeg", "aGk=")),
        ({"blob": "aGk=", "mimeType": "application/pdf"}, Document("a.pdf", "aGk=")),
        (
            {"blob": "aGk=", "mimeType": "application/zip"},
            Text("Resource file:///x/a.pdf (application/zip), whose content cannot be shown here"),
        ),
        (
            {"blob": "aGk="},
            Text("Resource file:///x/a.pdf (unknown type), whose content cannot be shown here"),
        ),
    ],
)
def test_an_embedded_resource_is_what_it_holds(resource: dict[str, Any], part: Any) -> None:
    block = {"type": "resource", "resource": {"uri": "file:///x/a.pdf", **resource}}
    assert parts_of({"content": [block]}) == (part,)


def test_long_texts_are_cut_and_the_model_is_told() -> None:
    blocks = [{"type": "text", "text": "x" * 6}, IMAGE, {"type": "text", "text": "y" * 6}]
    assert parts_of({"content": blocks}, at_most=8) == (
        Text("xxxxxx"),
        Picture("image/png", "aGk="),
        Text("yy"),
        Text("[cut here: 4 more characters; ask for less at once]"),
    )


def dumped(**fields: Any) -> Any:
    """As an SDK's object."""
    return SimpleNamespace(model_dump=lambda exclude_none: fields)


def test_messages_of_an_sdk_become_plain_ones() -> None:
    block = dumped(type="text", text="hi")
    assert plain({"content": [block], "n": ("x", 1)}) == {
        "content": [{"type": "text", "text": "hi"}],
        "n": ["x", 1],
    }
    whole = dumped(id="msg", role="assistant", content=[TEXT], stop_reason="end_turn")
    assert as_message(whole, "anthropic") == {"role": "assistant", "content": [TEXT]}
    said = {"role": "assistant", "content": None, "tool_calls": [], "audio": None}
    kept = {"role": "assistant", "content": None, "tool_calls": []}
    assert as_message(said, "openai") == kept


@pytest.mark.parametrize(
    ("said", "shape"),
    [
        ("hello", "anthropic"),
        (None, "openai"),
        ({"role": "assistant"}, "anthropic"),
        ({"choices": []}, "openai"),
    ],
)
def test_what_is_no_message_is_refused(said: Any, shape: Format) -> None:
    with pytest.raises(ValueError, match="message"):
        as_message(said, shape)


def test_calls_of_both_formats_are_the_same() -> None:
    anthropic = {
        "content": [TEXT, {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}}, "odd"]
    }
    function = {"name": "add", "arguments": '{"a": 1}'}
    openai = {"content": "hello", "tool_calls": [{"id": "1", "function": function}, "odd"]}
    assert calls_in(anthropic, "anthropic") == [ToolCall("1", "add", {"a": 1})]
    assert calls_in(openai, "openai") == [ToolCall("1", "add", {"a": 1})]
    assert text_of(anthropic, "anthropic") == text_of(openai, "openai") == "hello"
    assert calls_in({"content": "hello"}, "anthropic") == []
    assert calls_in({"content": "hello"}, "openai") == []


def test_a_refusal_is_what_a_model_says() -> None:
    blocks = [{"type": "refusal", "refusal": "no"}, {"type": "text", "text": 3}]
    assert text_of({"content": blocks}, "openai") == "no"
    assert text_of({"content": None}, "openai") == ""


@pytest.mark.parametrize(
    ("function", "flaw"),
    [
        ({"name": "x", "arguments": '{"a": '}, "no JSON"),
        ({"name": "x", "arguments": "[1]"}, "must be a JSON object"),
        (None, "only calls of functions"),
    ],
)
def test_arguments_that_cannot_be_used_are_a_flaw(function: Any, flaw: str) -> None:
    call = calls_in({"tool_calls": [{"id": "1", "function": function}]}, "openai")[0]
    assert flaw in (call.flaw or "")


@pytest.mark.parametrize("arguments", ["", None, "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    function = {"name": "x", "arguments": arguments}
    assert calls_in({"tool_calls": [{"id": "1", "function": function}]}, "openai") == [
        ToolCall("1", "x", {})
    ]


CALL = ToolCall("1", "draw")
SHOWN = (
    Text("t"),
    Picture("image/png", "P"),
    Picture("image/tiff", "T"),
    Sound("audio/mpeg", "S"),
    Sound("audio/ogg", "O"),
    Document("a.pdf", "D"),
)


def test_anthropic_gets_pictures_and_documents_in_the_result() -> None:
    message = answers_for(
        [Answer(CALL, SHOWN), Answer(CALL, (Text("no"),), is_error=True)], "anthropic"
    )
    assert len(message) == 1
    first, second = message[0]["content"]
    assert message[0]["role"] == "user"
    assert first["tool_use_id"] == "1"
    assert "is_error" not in first
    assert second["is_error"] is True
    kinds = [one["type"] for one in first["content"]]
    assert kinds == ["text", "image", "text", "text", "text", "document"]
    assert first["content"][1]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": "P",
    }
    assert "image/tiff" in first["content"][2]["text"]


def test_openai_gets_texts_in_the_result_and_the_rest_in_a_message_after_all() -> None:
    messages = answers_for(
        [Answer(CALL, SHOWN), Answer(CALL, (Text("no"),), is_error=True)], "openai"
    )
    assert [one["role"] for one in messages] == ["tool", "tool", "user"]
    assert messages[0]["content"].startswith("t\n[an image (image/png): see the next message]")
    assert "audio/ogg), which this model is not given" in messages[0]["content"]
    assert messages[1]["content"] == "Error:\nno"
    kinds = [one["type"] for one in messages[2]["content"]]
    assert kinds == ["text", "image_url", "image_url", "input_audio", "file"]
    assert "draw" in messages[2]["content"][0]["text"]
    assert json.dumps(messages)
    assert len(answers_for([Answer(CALL, (Text("x"),))], "openai")) == 1
