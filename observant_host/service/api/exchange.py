"""How requests are read and answers are written, whatever they are about."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from observant_host.errors import InvalidCall
from observant_host.service.admin import JSON
from observant_host.service.callers import Caller
from observant_host.service.served import Served

T = TypeVar("T")
Handler = Callable[[Served, web.Request, Caller], Awaitable[web.StreamResponse]]

NO_STORE: Final = {"Cache-Control": "no-store"}
ASK_AGAIN: Final = {"Cache-Control": "private, no-cache"}
"""It may be kept, but not shown without asking whether it still holds."""


def answered(body: bytes) -> web.Response:
    """Of a look: with a tag, so that whoever looks again pays only for what changed.

    Source: RFC 9110 8.8.3 and 13.1.2.
    """
    tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
    return web.Response(body=body, content_type=JSON, headers={"ETag": tag, **ASK_AGAIN})


def unchanged(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """The response, or 304 where the client has it."""
    tag = response.headers.get("ETag")
    known = request.if_none_match
    if tag is None or not known:
        return response
    if any(one.value in ("*", tag.strip('"')) for one in known):
        return web.Response(status=304, headers={"ETag": tag, **ASK_AGAIN})
    return response


def taken(body: bytes, *, status: int = 200) -> web.Response:
    """Of an act or a call: nobody keeps it."""
    return web.Response(body=body, status=status, content_type=JSON, headers=NO_STORE)


async def body_of(request: web.Request, kind: type[T]) -> T:
    """The request's body as `kind`, none at all as an empty one. Raises InvalidCall that says what
    is wrong with it."""
    data = await request.read() or b"{}"
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidCall(f"the request's body cannot be used: {error}") from None
