"""Entries of a list, one by one: each bad one loses only itself.

Source: MCP 2026-07-28 server/tools › Tool Names (names outside the recommended characters are not
rejected), basic/index › JSON Schema Usage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from observant_host.decisions import texts
from observant_host.decisions.catalogue import (
    EntryKind,
    Excluded,
    ListedPrompt,
    ListedResource,
    ListedTool,
)
from observant_host.decisions.terms import ExclusionReason
from observant_host.wire.mirrored_headers import Mirrored

if TYPE_CHECKING:
    from observant_host.config import ToolFilter

MAX_NAME_CHARS: Final = 1024
"""The specification recommends 128; a name far beyond it is no name but a payload in every list."""

MAX_URI_CHARS: Final = 8192
"""The longest URI that common software accepts."""

SchemaProblem = Callable[[Raw | None], str | None]
"""`schema_check.input_schema_problem`: the tool's inputSchema (None: absent) to a sentence."""

Annotations = Callable[[Raw | None], tuple[Mirrored, ...] | str]
"""`wire.mirrored_headers.annotations_of`: those of the inputSchema, or what is wrong with one."""


def no_annotations(_: Raw | None) -> tuple[Mirrored, ...]:
    """A transport without headers ignores annotations about them."""
    return ()


class SiftedTools(msgspec.Struct, frozen=True):
    kept: tuple[ListedTool, ...]
    excluded: tuple[Excluded, ...]


class SiftedPrompts(msgspec.Struct, frozen=True):
    kept: tuple[ListedPrompt, ...]
    excluded: tuple[Excluded, ...]


class SiftedResources(msgspec.Struct, frozen=True):
    kept: tuple[ListedResource, ...]
    excluded: tuple[Excluded, ...]


class _Entry(msgspec.Struct, rename="camel", gc=False):
    """What matters of a tool or a prompt. The name may be of any type, and the others are still
    raw: a wrong one costs nothing elsewhere."""

    name: Any = None
    input_schema: Raw | UnsetType = UNSET
    output_schema: Raw | UnsetType = UNSET
    annotations: Raw | UnsetType = UNSET
    execution: Raw | UnsetType = UNSET


class _Resource(msgspec.Struct, gc=False):
    name: Any = msgspec.field(default=None, name="uri")


class _Template(msgspec.Struct, gc=False):
    name: Any = msgspec.field(default=None, name="uriTemplate")


_DECODERS: Final[Mapping[str, Callable[[Raw], Any]]] = {
    "name": msgspec.json.Decoder(_Entry).decode,
    "uri": msgspec.json.Decoder(_Resource).decode,
    "uriTemplate": msgspec.json.Decoder(_Template).decode,
}
_NO_ENTRY: Final = _Entry()
_NULL: Final = Raw(b"null")
_Row = tuple[str, Raw, Any]


def sift_tools(
    server: str,
    items: Iterable[Raw],
    *,
    tool_filter: ToolFilter,
    schema_problem: SchemaProblem,
    annotations: Annotations = no_annotations,
) -> SiftedTools:
    """All pages' `tools` entries, in order. The first of two entries of one name is kept."""
    excluded: list[Excluded] = []
    kept: list[ListedTool] = []
    filtering = bool(tool_filter.allow or tool_filter.deny)
    for name, raw, entry in _usable(server, items, member="name", kind="tool", excluded=excluded):
        schema = None if entry.input_schema is UNSET else entry.input_schema
        if filtering and not is_allowed(name, tool_filter):
            reason, problem = (
                ExclusionReason.DENIED,
                f"`tools` of server {server} does not allow it",
            )
        elif (unusable := schema_problem(schema)) is not None:
            reason, problem = ExclusionReason.INVALID_SCHEMA, unusable
        elif isinstance(mirrored := annotations(schema), str):
            reason, problem = ExclusionReason.INVALID_HEADER_ANNOTATION, mirrored
        else:
            kept.append(_tool(name, raw, entry, mirrored))
            continue
        excluded.append(Excluded(server, name, reason, problem))
    return SiftedTools(tuple(kept), tuple(excluded))


def sift_prompts(server: str, items: Iterable[Raw]) -> SiftedPrompts:
    """As `sift_tools`, by `name`; a filter is about tools only."""
    excluded: list[Excluded] = []
    rows = _usable(server, items, member="name", kind="prompt", excluded=excluded)
    kept = tuple(ListedPrompt(name, raw) for name, raw, _ in rows)
    return SiftedPrompts(kept, tuple(excluded))


def sift_resources(
    server: str, items: Iterable[Raw], *, templates: bool = False
) -> SiftedResources:
    """`resources` entries by `uri`, or with `templates` resourceTemplates by `uriTemplate`."""
    excluded: list[Excluded] = []
    member = "uriTemplate" if templates else "uri"
    rows = _usable(server, items, member=member, kind="resource", excluded=excluded)
    kept = tuple(ListedResource(uri, raw, templates) for uri, raw, _ in rows)
    return SiftedResources(kept, tuple(excluded))


def is_allowed(local_name: str, tool_filter: ToolFilter) -> bool:
    """Case-sensitive globs; `deny` wins, an empty `allow` allows all."""
    if any(fnmatchcase(local_name, glob) for glob in tool_filter.deny):
        return False
    allow = tool_filter.allow
    return not allow or any(fnmatchcase(local_name, glob) for glob in allow)


def _usable(
    server: str,
    items: Iterable[Raw],
    *,
    member: str,
    kind: EntryKind,
    excluded: list[Excluded],
) -> Iterator[_Row]:
    """Entries with a usable, new name; the others go to `excluded`."""
    seen: set[str] = set()
    decode = _DECODERS[member]
    longest = MAX_URI_CHARS if kind == "resource" else MAX_NAME_CHARS
    for position, raw in enumerate(items, start=1):
        try:
            entry = decode(raw)
        except texts.UNREADABLE:
            entry = _NO_ENTRY
        name = entry.name
        if isinstance(name, str) and 0 < len(name) <= longest and name not in seen:
            seen.add(name)
            yield name, raw, entry
        elif isinstance(name, str) and name in seen:
            detail = f"entry {position} of the {kind} list repeats a {member} listed before it"
            excluded.append(
                Excluded(server, name, ExclusionReason.DUPLICATE_IN_SERVER, detail, kind)
            )
        else:
            problem = _name_problem(name, member, longest)
            detail = f"entry {position} of the {kind} list: {problem}"
            shown = (texts.as_text(name) or "")[:128]
            excluded.append(Excluded(server, shown, ExclusionReason.INVALID_NAME, detail, kind))


def _name_problem(name: object, member: str, longest: int) -> str:
    if not isinstance(name, str):
        return f"it is no object with a string `{member}`"
    if not name:
        return f"its `{member}` is empty"
    return f"its `{member}` is longer than {longest} characters"


def _tool(name: str, raw: Raw, entry: _Entry, mirrored: tuple[Mirrored, ...]) -> ListedTool:
    if entry.annotations is UNSET and entry.execution is UNSET and entry.output_schema is UNSET:
        return ListedTool(name, raw, mirrored=mirrored)
    annotations = texts.members(entry.annotations)
    return ListedTool(
        name=name,
        raw=raw,
        read_only=_as_bool(annotations.get("readOnlyHint")),
        idempotent=_as_bool(annotations.get("idempotentHint")),
        task_required=texts.members(entry.execution).get("taskSupport") == "required",
        mirrored=mirrored,
        output_schema=_not_null(entry.output_schema),
    )


def _not_null(raw: Raw | UnsetType) -> Raw | None:
    return None if raw is UNSET or raw == _NULL else raw


def _as_bool(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
