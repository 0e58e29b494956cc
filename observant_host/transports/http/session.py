"""The session of a legacy Streamable HTTP server: an id it may give, and how it says it is gone.

Source: MCP 2025-11-25 basic/transports › Session Management, Protocol Version Header.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.transports.base import Outbound

SESSION_HEADER: Final = "Mcp-Session-Id"
VERSION_HEADER: Final = "MCP-Protocol-Version"

MAX_ID_CHARS: Final = 4096
"""Of a session id: it goes into a header, and servers take 8 KiB of those."""


class Session:
    """What is sent on every legacy request once `initialize` was answered."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.version: str | None = None

    def begin(self, headers: Mapping[str, str]) -> bool:
        """Take the id from the answer to `initialize`; False where it is none that can be sent."""
        given = headers.get(SESSION_HEADER)
        self.id = given if given and re.fullmatch(rf"[!-~]{{1,{MAX_ID_CHARS}}}", given) else None
        return not given or self.id is not None

    def headers(self) -> dict[str, str]:
        """For what belongs to no message: a GET, a DELETE."""
        own = {VERSION_HEADER: self.version} if self.version is not None else {}
        return own | ({SESSION_HEADER: self.id} if self.id is not None else {})

    def headers_for(self, out: Outbound) -> dict[str, str]:
        """`initialize` asks for a new session, so it carries no old one."""
        own = {VERSION_HEADER: out.version} if out.version is not None else {}
        if out.method == "initialize" or self.id is None:
            return own
        return own | {SESSION_HEADER: self.id}


class _ErrorBody(msgspec.Struct, frozen=True):
    code: object = None


class _Refusal(msgspec.Struct, frozen=True):
    id: object = None
    error: _ErrorBody | None = None


METHOD_NOT_FOUND: Final = -32601

_UNKNOWN: Final = re.compile(
    rb"session\W.{0,80}?\b(not found|unknown|invalid|expired|terminated|closed|missing|required"
    rb"|not exist|not initialized|no longer)"
    rb"|\b(unknown|invalid|expired|no valid|no such|no|missing|bad|stale|terminated)"
    rb"\W+(mcp.?)?session"
    rb"|server not initialized",
    re.IGNORECASE | re.DOTALL,
)


def is_lost(status: int, body: bytes, *, www_authenticate: str | None, request_id: object) -> bool:
    """Whether an answer to a request *with our session id* means that the session is gone.

    The specification says 404. Deployed servers also say 400, 401, 410 and 503, in words.
    """
    if status == 404:
        return not _method_unknown(body, request_id)
    if status == 410:
        return True
    if status in (400, 503) or (status == 401 and www_authenticate is None):
        return _UNKNOWN.search(body) is not None
    return False


def _method_unknown(body: bytes, request_id: object) -> bool:
    """404 is also how a method is refused, but then by the id of the request that named it."""
    try:
        refusal = msgspec.json.decode(body, type=_Refusal)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    if request_id is None or refusal.error is None or refusal.error.code != METHOD_NOT_FOUND:
        return False
    return type(refusal.id) is type(request_id) and refusal.id == request_id
