"""What a handler answered, made fit to be sent, or the reason why it is not.

A server gets only answers of the protocol's shape: a form's content by the form's own schema, no
content with a refusal or for an address, only `file:` roots. A wrong one is our program's mistake:
the call fails here, and the server never sees it.

Source: MCP 2026-07-28 client/elicitation › Response Actions, client/sampling, client/roots.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from observant_host.schema_check import check_structured
from observant_host.wire.envelope import encode
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from observant_host.peers.input_handlers import InputHandler, InputRequest

ACTIONS: Final = ("accept", "decline", "cancel")


class UnfitAnswer(ValueError):
    """The sentence says what is wrong; it holds nothing that a person typed."""


async def ask(
    request: InputRequest, handler: InputHandler, *, as_it_came: bool = False
) -> Mapping[str, Any] | Raw:
    """The handler's answer, checked; with `as_it_came` (it is the caller's, not our program's) only
    that it is an object. Raises UnfitAnswer, InputDeclined, and what it raises."""
    answer = await handler(request)
    if as_it_came:
        _object(answer)
        return answer
    return fit(request, answer)


def fit(request: InputRequest, answer: Mapping[str, Any] | Raw) -> Mapping[str, Any]:
    """The bare result object to be sent. Raises UnfitAnswer."""
    said = _object(answer)
    match request.kind:
        case "elicitation":
            return _elicited(request.decoded(), said)
        case "sampling":
            return _sampled(said)
        case "roots":
            return _roots(said)


def _object(answer: Mapping[str, Any] | Raw) -> Mapping[str, Any]:
    if isinstance(answer, Mapping):
        return answer
    try:
        value = decode_value(answer)
    except (TypeError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UnfitAnswer("it is no JSON object")
    return value


def _elicited(params: Mapping[str, Any], said: Mapping[str, Any]) -> Mapping[str, Any]:
    action = said.get("action")
    if action not in ACTIONS:
        raise UnfitAnswer(f"its `action` must be one of {', '.join(ACTIONS)}")
    answer: dict[str, Any] = {"action": action}
    if action == "accept" and params.get("mode", "form") == "form":
        answer["content"] = _form_content(params.get("requestedSchema"), said.get("content"))
    if "_meta" in said:
        answer["_meta"] = said["_meta"]
    return answer


def _form_content(schema: Any, content: Any) -> Mapping[str, Any]:
    content = {} if content is None else content
    if not isinstance(content, Mapping):
        raise UnfitAnswer("its `content` is no object")
    odd = [name for name, value in content.items() if not _is_plain(value)]
    if odd:
        raise UnfitAnswer(f"field {odd[0]!r} is no string, number, boolean or list of strings")
    if isinstance(schema, dict):
        _check_form(schema, content)
    return content


def _check_form(schema: dict[str, Any], content: Mapping[str, Any]) -> None:
    """Field by field, so that a complaint can name the field without quoting what was typed."""
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in content:
            raise UnfitAnswer(f"the form's required field {name!r} is missing")
    fields = schema.get("properties")
    for name, field in fields.items() if isinstance(fields, dict) else ():
        if name in content and _breaks(field, content[name]):
            raise UnfitAnswer(f"field {name!r} does not fit the form")
    if _breaks({key: schema[key] for key in schema if key != "properties"}, content):
        raise UnfitAnswer("it does not fit the form")


def _breaks(schema: Any, value: Any) -> bool:
    return check_structured(_raw(schema), _raw(value)) is not None


def _raw(value: Any) -> Raw:
    try:
        return Raw(encode(value))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UnfitAnswer("it cannot be written as JSON") from error


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(one, str) for one in value)
    return isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))


def _sampled(said: Mapping[str, Any]) -> Mapping[str, Any]:
    if said.get("role") not in ("user", "assistant"):
        raise UnfitAnswer("its `role` must be user or assistant")
    if not isinstance(said.get("model"), str):
        raise UnfitAnswer("its `model` must be a string")
    if not isinstance(said.get("content"), Mapping | list | Raw):
        raise UnfitAnswer("its `content` must be an object or a list")
    return said


def _roots(said: Mapping[str, Any]) -> Mapping[str, Any]:
    roots = said.get("roots")
    if not isinstance(roots, list | tuple):
        raise UnfitAnswer("its `roots` must be a list")
    for root in roots:
        uri = root.get("uri") if isinstance(root, Mapping) else None
        if not isinstance(uri, str) or not uri.startswith("file://"):
            raise UnfitAnswer("each root's `uri` must begin with file://")
    return said
