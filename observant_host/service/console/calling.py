"""The form that calls a tool: made from its schema, sent through the host like any other call."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.slices import sliced
from observant_host.errors import CallError, HostError, InvalidCall
from observant_host.service import views
from observant_host.service.console.call_form import Field, arguments_of, fields_of, filled
from observant_host.service.console.listed import tool_row
from observant_host.service.console.results import Shown, answered, failed, written
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from observant_host.decisions.catalogue import Catalogue, ToolEntry
    from observant_host.service.console.guard import Visit
    from observant_host.service.console.responses import Desk

MAX_NAME: Final = 256
NAMES: Final = 1000
"""Offered while a name is typed."""


class Calling:
    """GET shows the form, POST calls and shows it again with the result."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._host = desk.host

    async def form(self, request: web.Request) -> web.Response:
        visit = await self._desk.guard.visit(request)
        return self._page(request, visit, request.query.get("name", "")[:MAX_NAME])

    async def call(self, request: web.Request) -> web.Response:
        visit, given = await self._desk.guard.form(request, "mcp")
        name = given.get("name", "")[:MAX_NAME]
        try:
            shown, status = await self._called(visit, name, given), 200
        except CallError as error:
            shown, status = failed(error), views.status_of(error)
        except HostError as error:
            return self._desk.problem("Not called", str(error), status=views.status_of(error))
        return self._page(request, visit, name, given=given, result=shown, status=status)

    async def _called(self, visit: Visit, name: str, given: Mapping[str, str]) -> Shown:
        entry = self._catalogue(visit).lookup.get(name)
        if entry is None:
            raise InvalidCall(f"no tool is named {name!r} now", unknown=True)
        fields = _fields(entry)
        arguments = arguments_of(fields, filled(fields, given), more=given.get("more", ""))
        result = await self._host.call_tool(
            entry.name,
            arguments,
            deadline_s=_deadline(given.get("deadline", "")),
            principal=visit.caller.principal,
        )
        return answered(result)

    def _page(
        self,
        request: web.Request,
        visit: Visit,
        name: str,
        *,
        given: Mapping[str, str] | None = None,
        result: Shown | None = None,
        status: int = 200,
    ) -> web.Response:
        catalogue = self._catalogue(visit)
        entry = catalogue.lookup.get(name)
        return self._desk.page(
            request,
            visit,
            "call.html",
            here="call",
            status=status,
            name=name,
            names=[one.name for one in catalogue.tools[:NAMES]],
            tool=tool_row(entry) if entry is not None else None,
            description=entry.tool.description if entry is not None else "",
            schema=written(_schema(entry)) if entry is not None else "",
            fields=_refilled(_fields(entry), given) if entry is not None else (),
            more=(given or {}).get("more", ""),
            deadline=(given or {}).get("deadline", ""),
            may_call=visit.may("mcp"),
            result=result,
        )

    def _catalogue(self, visit: Visit) -> Catalogue:
        return sliced(self._host.catalogue, visit.caller.slice)


def _schema(entry: ToolEntry) -> Any:
    """Its `inputSchema`, {} where it cannot be read."""
    try:
        tool = decode_value(entry.tool.raw)
    except (ValueError, RecursionError):
        return {}
    return tool.get("inputSchema", {}) if isinstance(tool, dict) else {}


def _fields(entry: ToolEntry) -> tuple[Field, ...]:
    return fields_of(_schema(entry))


def _refilled(fields: tuple[Field, ...], given: Mapping[str, str] | None) -> tuple[Field, ...]:
    """With what was filled in, so that a call can be changed and made again."""
    if given is None:
        return fields
    texts = filled(fields, given)
    return tuple(msgspec.structs.replace(one, given=texts.get(one.name, "")) for one in fields)


def _deadline(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise InvalidCall(f"deadline {text[:20]!r}: write a number of seconds above 0")
    return seconds
