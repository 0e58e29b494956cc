"""The catalogue as rows of a page: searched, counted, cut, with what each entry costs a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from observant_host.decisions.catalogue_json import UNLOCKED
from observant_host.decisions.words import approximate_tokens
from observant_host.service.console.text import first_sentence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from observant_host.decisions.catalogue import Catalogue, PromptEntry, ResourceEntry, ToolEntry

ROWS: Final = 200
"""Of one page; a search finds the others."""
MAX_QUERY: Final = 200

Kind = Literal["tools", "prompts", "resources"]
KINDS: Final[tuple[Kind, ...]] = ("tools", "prompts", "resources")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """`tokens` None: not what a model reads."""

    name: str
    server: str
    local_name: str
    routable: bool
    description: str = ""
    pin: str = ""
    tokens: int | None = None
    template: bool = False


class Listed(msgspec.Struct, frozen=True):
    """`found` counts what fits the search, `rows` are the first of it; `tokens` is the cost of all
    that was found."""

    rows: tuple[Row, ...]
    found: int
    total: int
    tokens: int


class _Told(msgspec.Struct):
    """What a model is told of a tool; the rest of it is not decoded."""

    name: Any = msgspec.UNSET
    description: Any = msgspec.UNSET
    inputSchema: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # noqa: N815 - the wire's name


def listed(catalogue: Catalogue, kind: Kind, query: str = "") -> Listed:
    """Those that have every word of the query in name, server or description."""
    words = query[:MAX_QUERY].casefold().split()
    everything = _rows(catalogue, kind)
    found = [row for row in everything if _fits(row, words)]
    cost = sum(row.tokens or 0 for row in found)
    return Listed(tuple(found[:ROWS]), len(found), len(everything), cost)


def _fits(row: Row, words: Iterable[str]) -> bool:
    text = f"{row.name}\n{row.server}\n{row.local_name}\n{row.description}".casefold()
    return all(word in text for word in words)


def _rows(catalogue: Catalogue, kind: Kind) -> list[Row]:
    match kind:
        case "tools":
            return [tool_row(entry) for entry in catalogue.tools]
        case "prompts":
            return [_named(e, _description(e.prompt.raw)) for e in catalogue.prompts]
        case "resources":
            return [_resource(entry) for entry in catalogue.resources]


def tool_row(entry: ToolEntry) -> Row:
    """Of one tool, with its cost."""
    return Row(
        name=entry.name,
        server=entry.server,
        local_name=entry.local_name,
        routable=entry.routable,
        description=first_sentence(entry.tool.description or ""),
        pin=UNLOCKED,
        tokens=tokens_of(entry.tool.raw),
    )


def tokens_of(tool: msgspec.Raw) -> int:
    """What a model reads of it, roughly: name, description and schema."""
    try:
        told = msgspec.json.encode(msgspec.json.decode(tool, type=_Told))
    except (msgspec.DecodeError, RecursionError):
        told = bytes(tool)
    return approximate_tokens(told)


def _named(entry: PromptEntry, description: str) -> Row:
    return Row(
        name=entry.name,
        server=entry.server,
        local_name=entry.local_name,
        routable=entry.routable,
        description=description,
    )


def _resource(entry: ResourceEntry) -> Row:
    return Row(
        name=entry.uri,
        server=entry.server,
        local_name=entry.uri,
        routable=entry.routable,
        description=_description(entry.resource.raw),
        template=entry.resource.is_template,
    )


class _Described(msgspec.Struct):
    title: Any = None
    description: Any = None


def _description(raw: msgspec.Raw) -> str:
    try:
        said = msgspec.json.decode(raw, type=_Described)
    except (msgspec.DecodeError, RecursionError):
        return ""
    text = said.description or said.title
    return first_sentence(text) if isinstance(text, str) else ""
