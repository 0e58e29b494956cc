"""What a tool's result holds, by what a model can be given of it.

Source: MCP 2026-07-28 server/tools › Tool Result; server/resources › Resource Contents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_SHOWN: Final = 100_000
"""Characters of text of one result, about 25,000 tokens: who needs more asks for a part."""
PDF: Final = "application/pdf"
NOTHING: Final = "(the tool answered without content)"


class Text(msgspec.Struct, frozen=True):
    text: str


class Picture(msgspec.Struct, frozen=True):
    """`data` is base64, here and below."""

    mime: str
    data: str
    kind: ClassVar[str] = "an image"


class Sound(msgspec.Struct, frozen=True):
    mime: str
    data: str
    kind: ClassVar[str] = "audio"


class Document(msgspec.Struct, frozen=True):
    """A PDF."""

    name: str
    data: str
    kind: ClassVar[str] = "a document"
    mime: ClassVar[str] = PDF


Part = Text | Picture | Sound | Document


def parts_of(result: Mapping[str, Any], *, at_most: int = MAX_SHOWN) -> tuple[Part, ...]:
    """Of a result object, at least one. Structured content is given where no text says it."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    parts = [_part(block) for block in blocks]
    if "structuredContent" in result and not any(isinstance(one, Text) for one in parts):
        parts.append(Text(_json(result["structuredContent"])))
    return tuple(_bounded(parts, at_most)) or (Text(NOTHING),)


def _part(block: Any) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image", "data": str(data), "mimeType": str(mime)}:
            return Picture(mime, data)
        case {"type": "audio", "data": str(data), "mimeType": str(mime)}:
            return Sound(mime, data)
        case {"type": "resource", "resource": {"uri": str(uri)} as resource}:
            return _resource(uri, resource)
        case {"type": "resource_link", "uri": str(uri)}:
            about = [block.get(key) for key in ("title", "name", "description")]
            words = ", ".join(one for one in about if isinstance(one, str) and one)
            return Text(f"Resource {uri}" + (f": {words}" if words else ""))
        case _:
            return Text(_json(block))


def _resource(uri: str, resource: Mapping[str, Any]) -> Part:
    mime = resource.get("mimeType")
    kind = mime if isinstance(mime, str) else "unknown type"
    match resource:
        case {"text": str(text)}:
            return Text(f"Resource {uri}:\n{text}")
        case {"blob": str(blob)} if kind.startswith("image/"):
            return Picture(kind, blob)
        case {"blob": str(blob)} if kind.startswith("audio/"):
            return Sound(kind, blob)
        case {"blob": str(blob)} if kind == PDF:
            return Document(uri.rsplit("/", 1)[-1] or uri, blob)
        case _:
            return Text(f"Resource {uri} ({kind}), whose content cannot be shown here")


def _bounded(parts: Sequence[Part], left: int) -> Iterator[Part]:
    """Texts up to so many characters in all, then how much is missing. APIs refuse empty ones."""
    missing = 0
    for part in parts:
        if not isinstance(part, Text):
            yield part
            continue
        if kept := part.text[:left]:
            yield Text(kept)
        left -= len(kept)
        missing += len(part.text) - len(kept)
    if missing:
        yield Text(f"[cut here: {missing} more characters; ask for less at once]")


def _json(value: Any) -> str:
    return _encode(value).decode()


_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
