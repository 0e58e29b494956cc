"""Two tools in front of a large catalogue, for callers whose profile has `mode = "search"`.

A model that is shown a thousand tools chooses badly and pays for each. It is shown `find_tools` and
`call_tool` instead. The second is unwrapped before anything else sees it, so that the call, its
progress, its rounds of input, its record and its errors are those of the tool it names.

A server's own tool of one of the two names is found and called like any other: by `call_tool`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from observant_host.decisions.tool_search import Index, words_of
from observant_host.service.mcp.announced import OUR_META
from observant_host.service.mcp.front_tools import CALL, FIND, LIMIT, MAX_LIMIT
from observant_host.service.mcp.outlet import encode, result_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from observant_host.decisions.catalogue import ToolEntry
    from observant_host.decisions.northbound import Question
    from observant_host.decisions.slices import Slice
    from observant_host.service.mcp.lists import Lists, Shown
    from observant_host.service.mcp.outlet import Response

MAX_INDEXES: Final = 16
"""Kept indexes: one for each profile that searches, some of the versions before."""
MAX_SCHEMAS: Final = 256 * 1024
"""Bytes of schemas in one answer; later ones are left out, and can be asked for by name."""


class Wanted(msgspec.Struct, frozen=True):
    """The arguments of `find_tools`."""

    query: str
    limit: int = LIMIT
    schemas: bool = True


class Wrong(NamedTuple):
    """A sentence for the model about arguments that cannot be used."""

    why: str


class _Call(msgspec.Struct, frozen=True):
    name: str
    arguments: Raw = Raw(b"{}")


def read_front(question: Question) -> Question | Wanted | Wrong:
    """What a caller that searches wants: `call_tool` as the call that it stands for, what is not of
    the two as it is."""
    name = question.target if question.method == "tools/call" else None
    arguments = question.params.get("arguments", Raw(b"{}"))
    try:
        if name == FIND:
            return _wanted(arguments)
        return _unwrapped(question, _call(arguments)) if name == CALL else question
    except (msgspec.MsgspecError, RecursionError) as error:
        return Wrong(f"the arguments of {name} cannot be used: {error}; nothing was called")


def refused(request_id: int | str, wrong: Wrong) -> Response:
    """As a result, so that the model can mend it."""
    return result_of(request_id, encode(_result(wrong.why, isError=True)))


class Search:
    """Of one desk. Indexes are made off the loop and kept by what they are made of."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self._indexes: OrderedDict[tuple[str, str, bool], Index] = OrderedDict()
        self._making = asyncio.Lock()

    async def find(self, request_id: int | str, wanted: Wanted, part: Slice) -> Response:
        """The tools of the caller's part that fit best, as text and as structured content."""
        shown = self._lists.shown(part)
        index = await self._index(shown, part)
        limit = min(max(wanted.limit, 1), MAX_LIMIT)
        spelled = shown.catalogue.lookup.get(wanted.query.strip())
        query = wanted.query if spelled is None else self._lists.name_of(spelled)
        names = await asyncio.to_thread(index.best, query, limit)
        entries = (shown.catalogue.lookup[name] for name in names)
        found = {
            "tools": list(_told(entries, shown, by_name=self._lists.name_of, wanted=wanted)),
            "total": len(shown.catalogue.tools),
        }
        return result_of(request_id, encode(_result(_text(found), structuredContent=found)))

    async def _index(self, shown: Shown, part: Slice) -> Index:
        entries = shown.catalogue.tools
        names = [self._lists.name_of(entry) for entry in entries]
        key = (shown.catalogue.digest, part.key, self._lists.by_api)
        async with self._making:  # the first of many who come at once makes it
            index = self._indexes.get(key)
            if index is None:
                index = await asyncio.to_thread(_made, entries, names)
                self._indexes[key] = index
        self._indexes.move_to_end(key)
        while len(self._indexes) > MAX_INDEXES:
            self._indexes.popitem(last=False)
        return index


def _made(entries: Iterable[ToolEntry], names: Iterable[str]) -> Index:
    return Index([words_of(entry, name=name) for entry, name in zip(entries, names, strict=True)])


def _told(
    entries: Iterable[ToolEntry], shown: Shown, *, by_name: Any, wanted: Wanted
) -> Iterable[dict[str, Any]]:
    left = MAX_SCHEMAS if wanted.schemas else 0
    for entry in entries:
        told: dict[str, Any] = {"name": by_name(entry)}
        if entry.tool.title is not None:
            told["title"] = entry.tool.title
        told["description"] = entry.tool.description or ""
        schema = _members(shown.tools[entry.name][1].raw).get("inputSchema", Raw(b"{}"))
        size = len(memoryview(schema))
        if size <= left:
            told["inputSchema"], left = schema, left - size
        told["available"] = entry.routable
        yield told


def _text(found: dict[str, Any]) -> str:
    if not found["tools"]:
        return f"none of the {found['total']} tools fits; try other words"
    return encode(found).decode()


def _result(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"resultType": "complete", "content": content, **more, "_meta": OUR_META}


def _unwrapped(question: Question, call: _Call) -> Question:
    params = {**question.params, "name": Raw(encode(call.name)), "arguments": call.arguments}
    return msgspec.structs.replace(question, params=params, target=call.name)


_wanted: Final = msgspec.json.Decoder(Wanted).decode
_call: Final = msgspec.json.Decoder(_Call).decode
_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
