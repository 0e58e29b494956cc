"""Tools, calls and results in the words of two model APIs, and nothing else of these APIs.

Plain dictionaries in and out, so that no SDK is needed and any version of one fits. A model reads
all that comes back: what a format cannot carry is said in words, and nothing is dropped in silence.

Source: Anthropic Messages API › Tool use; OpenAI Chat Completions API › Function calling;
MCP 2026-07-28 server/tools › Tool Result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

from observant_host.decisions.tool_content import Document, Part, Picture, Sound, Text
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from observant_host.decisions.catalogue import Catalogue

Format = Literal["anthropic", "openai"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)

Message = dict[str, Any]

ANTHROPIC_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
OPENAI_SOUNDS: Final = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


class ToolCall(msgspec.Struct, frozen=True):
    """What a model wants called. `flaw` says why its arguments cannot be used, else None."""

    id: str
    name: str
    arguments: Mapping[str, Any] = {}
    flaw: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """What came of a call, for the model."""

    call: ToolCall
    parts: tuple[Part, ...]
    is_error: bool = False


def tool_definition(shape: Format, *, name: str, description: str, schema: Any) -> dict[str, Any]:
    """One entry of a request's `tools`."""
    if shape == "anthropic":
        return {"name": name, "description": description, "input_schema": schema}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


def tools_for(catalogue: Catalogue, shape: Format) -> list[dict[str, Any]]:
    """The routable tools under names that the API takes, schemas as their servers sent them."""
    made = []
    for entry in catalogue.tools:
        if entry.routable:
            schema = decode_value(entry.tool.raw).get("inputSchema", {"type": "object"})
            about = entry.tool.description or ""
            made.append(
                tool_definition(shape, name=entry.api_name, description=about, schema=schema)
            )
    return made


def plain(value: Any) -> Any:
    """What an SDK gives as objects (of pydantic), as dictionaries."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(exclude_none=True)
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def as_message(said: Any, shape: Format) -> Message:
    """The model's message as it goes into the next request. Raises ValueError for what is none."""
    found = plain(said)
    if not isinstance(found, dict):
        raise ValueError(f"the model must return one message as an object, not {type(said)}")
    if shape == "anthropic":
        if not isinstance(found.get("content"), str | list):
            raise ValueError("the model's message has no `content` (a string or a list of blocks)")
        return {"role": "assistant", "content": found["content"]}
    if "choices" in found:
        raise ValueError("return the message of a choice, not the whole completion")
    kept = {key: one for key, one in found.items() if one is not None or key == "content"}
    return {**kept, "role": "assistant"}


def calls_in(message: Message, shape: Format) -> list[ToolCall]:
    """What the message wants called, in its order."""
    if shape == "anthropic":
        return [_tool_use(one) for one in _blocks(message) if one.get("type") == "tool_use"]
    return [_function_call(one) for one in message.get("tool_calls") or () if isinstance(one, dict)]


def text_of(message: Message, shape: Format) -> str:
    """What the message says in words."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    kinds = ("text",) if shape == "anthropic" else ("text", "refusal")
    texts = [one.get(one["type"]) for one in _blocks(message) if one.get("type") in kinds]
    return "\n".join(text for text in texts if isinstance(text, str))


def answers_for(answers: Sequence[Answer], shape: Format) -> list[Message]:
    """The messages that give a model what it asked for, one answer for each call."""
    if shape == "anthropic":
        return [{"role": "user", "content": [_tool_result(one) for one in answers]}]
    told: list[Message] = [
        {"role": "tool", "tool_call_id": one.call.id, "content": _openai_text(one)}
        for one in answers
    ]
    shown = [part for one in answers for part in _openai_shown(one)]
    return [*told, {"role": "user", "content": shown}] if shown else told


def _blocks(message: Message) -> list[dict[str, Any]]:
    content = message.get("content")
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []


def _tool_use(block: dict[str, Any]) -> ToolCall:
    return _call(block.get("id"), block.get("name"), block.get("input", {}))


def _function_call(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    if not isinstance(function, dict):
        return ToolCall(str(call.get("id")), "", flaw="only calls of functions are possible here")
    text = function.get("arguments") or "{}"
    try:
        arguments = decode_value(text.encode()) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        flaw = f"the arguments are no JSON ({error}); nothing was executed"
        return ToolCall(str(call.get("id")), str(function.get("name")), flaw=flaw)
    return _call(call.get("id"), function.get("name"), arguments)


def _call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    if isinstance(arguments, dict):
        return ToolCall(str(call_id), str(name), arguments)
    flaw = "the arguments must be a JSON object; nothing was executed"
    return ToolCall(str(call_id), str(name), flaw=flaw)


def _tool_result(answer: Answer) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": answer.call.id,
        "content": [_anthropic(part) for part in answer.parts],
    }
    return {**made, "is_error": True} if answer.is_error else made


def _anthropic(part: Part) -> dict[str, Any]:
    match part:
        case Picture(mime, data) if mime in ANTHROPIC_PICTURES:
            source = {"type": "base64", "media_type": mime, "data": data}
            return {"type": "image", "source": source}
        case Document(_, data):
            source = {"type": "base64", "media_type": "application/pdf", "data": data}
            return {"type": "document", "source": source}
        case Text(text):
            return {"type": "text", "text": text}
        case _:
            return {"type": "text", "text": _unshown(part)}


def _openai_text(answer: Answer) -> str:
    """A tool's message holds text alone: what else there is follows in a message of the user."""
    lines = ["Error:"] if answer.is_error else []
    for part in answer.parts:
        if isinstance(part, Text):
            lines.append(part.text)
        elif _openai(part) is None:
            lines.append(_unshown(part))
        else:
            lines.append(f"[{part.kind} ({part.mime}): see the next message]")
    return "\n".join(lines)


def _openai_shown(answer: Answer) -> list[dict[str, Any]]:
    shown = [one for part in answer.parts if (one := _openai(part)) is not None]
    if not shown:
        return []
    said = f"From the tool {answer.call.name}, call {answer.call.id}:"
    return [{"type": "text", "text": said}, *shown]


def _openai(part: Part) -> dict[str, Any] | None:
    match part:
        case Picture(mime, data):
            url = f"data:{mime};base64,{data}"
            return {"type": "image_url", "image_url": {"url": url}}
        case Sound(mime, data) if mime in OPENAI_SOUNDS:
            sound = {"data": data, "format": OPENAI_SOUNDS[mime]}
            return {"type": "input_audio", "input_audio": sound}
        case Document(name, data):
            file = {"filename": name, "file_data": f"data:application/pdf;base64,{data}"}
            return {"type": "file", "file": file}
        case _:
            return None


def _unshown(part: Picture | Sound | Document) -> str:
    return f"[{part.kind} ({part.mime}), which this model is not given]"
