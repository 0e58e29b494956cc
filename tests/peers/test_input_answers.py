"""A handler's answer goes out in the protocol's shape, or not at all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from observant_host.peers.input_answers import UnfitAnswer, fit
from observant_host.peers.input_handlers import (
    InputHandlers,
    InputKind,
    InputRequest,
    forbidden,
)

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "default": "Ada"},
        "age": {"type": "integer", "minimum": 0},
        "height": {"type": "number"},
        "sure": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"]},
        "size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 2},
        "more": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}},
    },
    "required": ["name"],
}
BOTH = ("form", "url")


async def nobody(_request: InputRequest) -> dict[str, Any]:
    return {}


def request(kind: InputKind, params: Any) -> InputRequest:
    return InputRequest(server="s", kind=kind, method="m", params=Raw(msgspec.json.encode(params)))


def form(answer: Any, schema: Any = FORM) -> Any:
    return fit(request("elicitation", {"message": "?", "requestedSchema": schema}), answer)


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


GOOD = [
    {"name": "Ada"},
    {"name": "Ada", "age": 36, "height": 3.5, "sure": False},
    {"name": "Ada", "height": 3},
    {"name": "Ada", "colour": "red", "size": "l"},
    {"name": "Ada", "tags": ["a", "b"], "more": ["x"]},
    {"name": "Ada", "tags": []},
    {"name": "Ada", "unasked": "fine"},
]
BAD = [
    ({}, "name"),
    ({"name": "A"}, "name"),
    ({"name": 5}, "name"),
    ({"name": None}, "name"),
    ({"name": "Ada", "age": 3.5}, "age"),
    ({"name": "Ada", "age": -1}, "age"),
    ({"name": "Ada", "sure": "yes"}, "sure"),
    ({"name": "Ada", "colour": "green"}, "colour"),
    ({"name": "Ada", "size": "m"}, "size"),
    ({"name": "Ada", "tags": ["c"]}, "tags"),
    ({"name": "Ada", "tags": ["a", "b", "a"]}, "tags"),
    ({"name": "Ada", "tags": [1]}, "tags"),
    ({"name": "Ada", "nested": {"a": 1}}, "nested"),
    ({"name": "Ada", "number": float("inf")}, ""),
]


@pytest.mark.parametrize("content", GOOD)
@pytest.mark.parametrize("raw", [True, False])
def test_content_that_fits_the_form_goes_out_as_it_is(content: Any, raw: bool) -> None:
    answer = accepted(**content)
    assert form(Raw(msgspec.json.encode(answer)) if raw else answer) == answer


@pytest.mark.parametrize(("content", "field"), BAD)
def test_content_that_does_not_fit_is_not_sent_and_its_field_is_named(
    content: Any, field: str
) -> None:
    with pytest.raises(UnfitAnswer) as caught:
        form(accepted(**content))
    assert field in str(caught.value)


def test_a_complaint_never_quotes_what_a_person_typed() -> None:
    for content in (
        {"name": "Ada", "colour": "hunter2"},
        {"name": "Ada", "nested": ["hunter2", 1]},
    ):
        with pytest.raises(UnfitAnswer) as caught:
            form(accepted(**content))
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refusal_is_an_answer_without_content(action: str) -> None:
    assert form({"action": action, "content": {"name": 5}}) == {"action": action}


def test_an_accepted_address_has_no_content_and_an_empty_form_has_an_empty_one() -> None:
    opened = request("elicitation", {"mode": "url", "url": "https://example.com/", "message": "?"})
    assert fit(opened, {"action": "accept", "content": {"a": 1}}) == {"action": "accept"}
    assert form({"action": "accept"}, schema={"type": "object", "properties": {}}) == accepted()
    assert form({"action": "accept", "_meta": {"k": 1}}, schema=None)["_meta"] == {"k": 1}


@pytest.mark.parametrize(
    "answer", [{}, {"action": "yes"}, {"action": "accept", "content": []}, Raw(b"[]"), Raw(b"{")]
)
def test_what_is_no_answer_at_all_is_not_sent(answer: Any) -> None:
    with pytest.raises(UnfitAnswer):
        form(answer)


@pytest.mark.parametrize(
    ("kind", "answer", "fits"),
    [
        ("sampling", {"role": "assistant", "model": "m", "content": {"type": "text"}}, True),
        ("sampling", {"role": "system", "model": "m", "content": {}}, False),
        ("sampling", {"role": "user", "content": {}}, False),
        ("sampling", {"role": "user", "model": "m", "content": "text"}, False),
        ("roots", {"roots": []}, True),
        ("roots", {"roots": [{"uri": "file:///home"}]}, True),
        ("roots", {"roots": [{"uri": "https://example.com"}]}, False),
        ("roots", {"roots": ["file:///home"]}, False),
        ("roots", {}, False),
    ],
)
def test_samples_and_roots_have_their_shape(kind: InputKind, answer: Any, fits: bool) -> None:
    if fits:
        assert fit(request(kind, {}), answer) == answer
    else:
        with pytest.raises(UnfitAnswer):
            fit(request(kind, {}), answer)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.com/a?b=c#d", True),
        ("http://127.0.0.1:8080/", True),
        ("HTTPS://EXAMPLE.COM", True),
        ("https://xn--80ak6aa92e.com/", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("https://", False),
        ("https://bank.example@evil.example/", False),
        ("https://example.com/\u202egpj", False),
        ("https://example.com/a b", False),
        ("https://example.com/\n", False),
        ("https://[::1", False),
        ("", False),
        (None, False),
        (5, False),
    ],
)
def test_only_plain_web_addresses_are_ever_shown(url: Any, allowed: bool) -> None:
    handlers = InputHandlers(elicitation=nobody, elicitation_modes=BOTH)
    asked = request("elicitation", {"mode": "url", "url": url, "message": "?"})
    assert (forbidden(asked, handlers) is None) is allowed


@pytest.mark.parametrize(
    ("modes", "mode", "allowed"),
    [
        (("form",), None, True),
        (("form",), "form", True),
        (("form",), "url", False),
        (("url",), "url", True),
        (("url",), None, False),
        (BOTH, "url", True),
        (BOTH, "mind", False),
    ],
)
def test_a_mode_that_was_not_declared_is_not_shown(modes: Any, mode: Any, allowed: bool) -> None:
    handlers = InputHandlers(elicitation=nobody, elicitation_modes=modes)
    params = {"message": "?", "url": "https://example.com/"}
    asked = request("elicitation", params if mode is None else {**params, "mode": mode})
    assert (forbidden(asked, handlers) is None) is allowed
    assert handlers.capabilities() == {"elicitation": {one: {} for one in modes}}
