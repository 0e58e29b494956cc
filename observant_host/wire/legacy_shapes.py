"""Results in the shapes of the legacy revisions: each without what came after it.

A client that checks what it gets refuses a whole result for one kind of content that its revision
does not have. What it cannot be shown is said in text, where it is content, else left out. Bytes
that hold no newer word pass untouched, and members that nobody has to look into are never decoded.

Source: MCP 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28, schema.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Members = dict[str, Raw]

NEVER: Final = "9999-12-31"
"""Of what a legacy revision may know and we do not offer."""

MODERN_MEMBERS: Final = ("resultType", "ttlMs", "cacheScope")
MODERN_PREFIX: Final = "io.modelcontextprotocol/"

NAMED: Final[Mapping[str, str]] = {
    "title": "2025-06-18",
    "_meta": "2025-06-18",
    "icons": "2025-11-25",
}
"""Members of everything that is listed, by the revision they came with."""

ENTRIES: Final[Mapping[str, Mapping[str, str]]] = {
    "tools": {
        **NAMED,
        "annotations": "2025-03-26",
        "outputSchema": "2025-06-18",
        "execution": NEVER,
    },
    "prompts": NAMED,
    "resources": NAMED,
    "resourceTemplates": NAMED,
}
LISTED: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
BLOCKS: Final[Mapping[str, str]] = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""Kinds of content that are newer than the oldest revision."""
BLOCK_MEMBERS: Final[Mapping[str, str]] = NAMED

STRUCTURED: Final = "2025-06-18"
"""Since then results have `structuredContent`, up to 2025-11-25 only an object."""


def shaped(method: str, result: bytes | Raw, revision: str) -> bytes | Raw:
    """The result of `method` as the revision has it; itself where nothing is to be changed."""
    if not has_newer_words(method, result, revision):
        return result
    try:
        members = _members(result)
        for key in MODERN_MEMBERS:
            members.pop(key, None)
        _clean_meta(members)
        _inside(method, members, revision)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return result
    return _encode(members)


def has_newer_words(method: str, part: bytes | memoryview | Raw, revision: str) -> bool:
    """Whether these bytes of a result may hold anything to be changed."""
    return _newer_words(method, revision).search(memoryview(part)) is not None


def _inside(method: str, members: Members, revision: str) -> None:
    if (kind := LISTED.get(method)) is not None:
        entries: list[Raw] = _list(members[kind]) if kind in members else []
        members[kind] = _raw([_entry(kind, one, revision) for one in entries])
    elif method == "tools/call":
        _tool_result(members, revision)
    elif method == "prompts/get" and "messages" in members:
        messages: list[Raw] = _list(members["messages"])
        members["messages"] = _raw([_message(one, revision) for one in messages])


def _entry(kind: str, entry: Raw, revision: str) -> Members:
    members = _without(_members(entry), ENTRIES[kind], revision)
    if kind == "tools" and not _is_object_schema(members.get("outputSchema")):
        members.pop("outputSchema", None)
    if kind == "prompts" and "arguments" in members and revision < NAMED["title"]:
        arguments: list[Raw] = _list(members["arguments"])
        members["arguments"] = _raw([_without(_members(one), NAMED, revision) for one in arguments])
    return members


def _tool_result(members: Members, revision: str) -> None:
    blocks: list[Raw] = _list(members["content"]) if "content" in members else []
    structured = members.get("structuredContent")
    if structured is not None and (revision < STRUCTURED or not _is_object(structured)):
        del members["structuredContent"]
        if not blocks:
            blocks = [_raw(_text(bytes(structured).decode()))]
    members["content"] = _raw([_block(one, revision) for one in blocks])


def _message(message: Raw, revision: str) -> Members:
    members = _members(message)
    if "content" in members:
        members["content"] = _raw(_block(members["content"], revision))
    return members


def _block(block: Raw, revision: str) -> Any:
    """A block of content, or a text in its place."""
    members = _members(block)
    kind = _any(members["type"]) if "type" in members else None
    if isinstance(kind, str) and BLOCKS.get(kind, "") > revision:
        return _IN_WORDS[kind](members)
    _clean_meta(members)
    return _without(members, BLOCK_MEMBERS, revision)


def _audio(members: Members) -> dict[str, str]:
    return _text(f"[audio, {_said(members, 'mimeType')}: this client's protocol has no audio]")


def _link(members: Members) -> dict[str, str]:
    about = [_said(members, key) for key in ("name", "uri", "description") if key in members]
    return _text(": ".join(about))


_IN_WORDS: Final[Mapping[str, Callable[[Members], dict[str, str]]]] = {
    "audio": _audio,
    "resource_link": _link,
}


def _said(members: Members, key: str) -> str:
    return str(_any(members[key])) if key in members else "?"


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _without(members: Members, since: Mapping[str, str], revision: str) -> Members:
    return {key: one for key, one in members.items() if since.get(key, "") <= revision}


def _clean_meta(members: Members) -> None:
    """Take the modern revision's own keys out of `_meta`, and an empty one away."""
    if "_meta" not in members:
        return
    meta = _members(members["_meta"])
    kept = {key: one for key, one in meta.items() if not key.startswith(MODERN_PREFIX)}
    if kept:
        members["_meta"] = _raw(kept)
    else:
        del members["_meta"]


def _is_object(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"{"


def _is_object_schema(raw: Raw | None) -> bool:
    """Legacy schemas of results describe an object, and say so."""
    if raw is None or not _is_object(raw):
        return False
    members = _members(raw)
    return "type" in members and _any(members["type"]) == "object"


def _newer_words(method: str, revision: str) -> re.Pattern[bytes]:
    """A revision that nobody knows is taken for the newest of them."""
    method = method if method in _METHODS else ""
    return _WORDS[method, revision if revision in _REVISIONS else _REVISIONS[-1]]


def _words(method: str, revision: str) -> re.Pattern[bytes]:
    words = [*MODERN_MEMBERS]
    patterns = [re.escape(MODERN_PREFIX).encode()]
    if method in LISTED:
        since = ENTRIES[LISTED[method]]
        words += [key for key, first in since.items() if first > revision]
        words += ["outputSchema"] if method == "tools/list" else []
    elif method:
        words += [kind for kind, first in BLOCKS.items() if first > revision]
        words += [key for key, first in BLOCK_MEMBERS.items() if first > revision]
    if method == "tools/call":
        patterns.append(
            rb'structuredContent"' if revision < STRUCTURED else rb'structuredContent"\s*:\s*[^{\s]'
        )
    return re.compile(b'"(?:' + b"|".join([f'{one}"'.encode() for one in words] + patterns) + b")")


_REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_METHODS: Final = ("", "tools/call", "prompts/get", *LISTED)
_WORDS: Final = {
    (method, revision): _words(method, revision) for method in _METHODS for revision in _REVISIONS
}
_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_list: Final = msgspec.json.Decoder(list[Raw]).decode
_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


def _raw(value: Any) -> Raw:
    return Raw(_encode(value))
