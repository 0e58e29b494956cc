"""A call's result, safe to look at: text is text, pictures are data of known types, links inert.

What a server sends may be made by whoever wrote the page it read: nothing of it is fetched, run,
followed, or shown without a bound.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from observant_host.errors import CallError, InvalidResult, RpcError

if TYPE_CHECKING:
    from observant_host.routing.call_result import CallResult

MAX_BLOCKS: Final = 100
MAX_PICTURE_CHARS: Final = 4 * 1024 * 1024
"""Of base64: a large screenshot. A page is not where a person looks at more."""
PICTURES: Final[Mapping[str, bytes]] = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""Types that hold only pixels, by how they begin. SVG is a document: it is not shown."""


class Block(msgspec.Struct, frozen=True):
    """`text` is the text, or what is said instead of what is not shown; `source` a data URI."""

    kind: Literal["text", "picture", "note"]
    text: str
    source: str = ""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is over, as a page shows it. `structured` is JSON, "" where there is none."""

    outcome: str
    delivery: str
    fault: str
    server: str = ""
    local_name: str = ""
    era: str = ""
    attempts: int = 0
    duration_ms: float | None = None
    trace_id: str | None = None
    message: str = ""
    blocks: tuple[Block, ...] = ()
    structured: str = ""
    problem: str = ""


def answered(result: CallResult) -> Shown:
    """Of a call that has a result."""
    blocks, structured = _content(result)
    problem = result.schema_problem
    return Shown(
        outcome=result.outcome,
        delivery=result.delivery,
        fault=result.fault,
        server=result.server,
        local_name=result.local_name,
        era=result.era,
        attempts=result.attempts,
        duration_ms=result.duration_ms,
        trace_id=result.trace_id,
        blocks=blocks,
        structured=structured,
        problem=str(problem.detail) if problem is not None else "",
    )


def failed(error: CallError) -> Shown:
    """Of a call without a result."""
    call = error.call
    said = f"{error.code}: {error.rpc_message}" if isinstance(error, RpcError) else str(error)
    facts: dict[str, Any] = {} if call is None else {
        "server": call.server,
        "local_name": call.local_name,
        "era": call.era,
        "attempts": call.attempts,
        "duration_ms": call.duration_ms,
        "trace_id": call.trace_id,
    }  # fmt: skip
    return Shown(
        outcome=error.outcome, delivery=error.delivery, fault=error.fault, message=said, **facts
    )


def _content(result: CallResult) -> tuple[tuple[Block, ...], str]:
    try:
        content = result.content
    except InvalidResult as error:
        return (Block("note", str(error)),), ""
    blocks = [block_of(one) for one in content[:MAX_BLOCKS]]
    if len(content) > MAX_BLOCKS:
        blocks.append(Block("note", f"{len(content) - MAX_BLOCKS} further blocks are not shown"))
    has = result.has_structured_content
    return tuple(blocks), written(result.structured_content) if has else ""


def written(value: Any) -> str:
    """Any JSON value, indented."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def block_of(block: Any) -> Block:
    """One block of `content`. Source: MCP 2026-07-28 server/tools, Tool Result."""
    if not isinstance(block, Mapping):
        return Block("note", "a block that is no object")
    match block.get("type"):
        case "text" if isinstance(block.get("text"), str):
            return Block("text", block["text"])
        case "image":
            return _picture(block)
        case "audio":
            return Block("note", f"audio ({_said(block, 'mimeType')}), {_size(block)}")
        case "resource_link":
            return Block("note", f"link to {_said(block, 'uri')} ({_said(block, 'name')})")
        case "resource" if isinstance(block.get("resource"), Mapping):
            return _resource(block["resource"])
        case kind:
            return Block("note", f"a block of type {kind!r} that cannot be shown")


def _resource(resource: Mapping[str, Any]) -> Block:
    text = resource.get("text")
    if isinstance(text, str):
        return Block("text", f"{_said(resource, 'uri')}\n\n{text}")
    return Block("note", f"resource {_said(resource, 'uri')} ({_said(resource, 'mimeType')})")


def _picture(block: Mapping[str, Any]) -> Block:
    kind, data = block.get("mimeType"), block.get("data")
    begins = PICTURES.get(kind) if isinstance(kind, str) else None
    if begins is None or not isinstance(data, str) or len(data) > MAX_PICTURE_CHARS:
        return Block("note", f"a picture ({_said(block, 'mimeType')}), {_size(block)}, not shown")
    try:
        pixels = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Block("note", "a picture that is no base64")
    if not pixels.startswith(begins):
        return Block("note", f"a picture that is no {kind}")
    return Block("picture", f"{kind}, {_size(block)}", f"data:{kind};base64,{data}")


def _said(block: Mapping[str, Any], key: str) -> str:
    value = block.get(key)
    return value[:300] if isinstance(value, str) else f"no {key}"


def _size(block: Mapping[str, Any]) -> str:
    data = block.get("data")
    return f"{len(data) * 3 // 4} bytes" if isinstance(data, str) else "no data"
