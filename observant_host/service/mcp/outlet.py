"""Where the answers to one message go, whatever carries them.

Notifications never wait: they come from readers of servers, which must not stand still for a slow
client. What no longer fits ends the outlet, and whoever carries it cancels the request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Raw

from observant_host.decisions.northbound import STATUS_OK, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.wire.jsonrpc import Id

Part = bytes | memoryview


class Response(msgspec.Struct, frozen=True):
    """One JSON-RPC response in pieces: a server's result is one of them, as its bytes came.

    `status` is that of HTTP, where HTTP carries it. `code` is the error's, None for a result.
    """

    parts: tuple[Part, ...]
    status: int = STATUS_OK
    code: int | None = None

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))

    def whole(self) -> bytes:
        return b"".join(self.parts)

    def one_line(self) -> tuple[Part, ...]:
        """The pieces without line breaks, for what frames by lines. Between tokens a line break is
        only white space, and inside a string JSON has none."""
        return tuple(_blank(part) if _BREAK.search(part) else part for part in self.parts)


class Outlet(Protocol):
    """One request's way back. `respond` is called once, and nothing after it."""

    @property
    def closed(self) -> bool:
        """Nobody reads any more; what is still said is lost."""

    @property
    def cut(self) -> str | None:
        """Why it was ended from our side ("slow_reader", …), None where it was not."""

    def notify(self, message: bytes) -> None:
        """One notification of this request, a JSON document without line breaks. Never waits."""

    async def respond(self, response: Response) -> None:
        """The response, last of all."""


def result_of(request_id: Id, result: bytes | Raw | tuple[Part, ...]) -> Response:
    """The response with this result. A server's `Raw` goes out as it came, without a copy."""
    match result:
        case tuple():
            parts = result
        case Raw():
            parts = (memoryview(result),)
        case _:
            parts = (result,)
    return Response((b'{"jsonrpc":"2.0","id":%b,"result":' % encode(request_id), *parts, b"}"))


def error_of(request_id: Id, refusal: Refusal) -> Response:
    """The response with this error. One to nobody knows what has no id.

    Source: MCP 2026-07-28 basic/index › Error Responses.
    """
    body: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        body["data"] = refusal.data
    to = b"" if request_id is None else b'"id":%b,' % encode(request_id)
    whole = b'{"jsonrpc":"2.0",%b"error":%b}' % (to, encode(body))
    return Response((whole,), refusal.status, refusal.code)


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """A notification as bytes, without line breaks."""
    text = encode({"jsonrpc": "2.0", "method": method, "params": params})
    return bytes(_blank(text)) if _BREAK.search(text) else text


def _blank(part: Part) -> bytes:
    return bytes(part).replace(b"\n", b" ").replace(b"\r", b" ")


encode: Final = msgspec.json.Encoder().encode
_BREAK: Final = re.compile(rb"[\r\n]")
