"""Which headers a message goes out with, by its era.

Source: MCP 2026-07-28 basic/transports/streamable-http › Request Metadata; 2025-11-25
basic/transports › Sending Messages to the Server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.transports.http.session import VERSION_HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.transports.base import Outbound
    from observant_host.transports.http.session import Session

_POST: Final[Mapping[str, str]] = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}

LISTEN: Final = "subscriptions/listen"


def post_headers(out: Outbound, session: Session) -> dict[str, str]:
    """Modern metadata goes out with modern messages only, a session id with legacy ones only."""
    headers = {**_POST, "Accept-Encoding": _accepted_coding(out.method)}
    if not out.modern:
        return headers | session.headers_for(out)
    if out.version is not None:
        headers[VERSION_HEADER] = out.version
    if out.method:
        headers["Mcp-Method"] = out.method
    if out.name is not None:
        headers["Mcp-Name"] = out.name
    headers.update(out.mirrored)
    return headers


def stream_headers(session: Session, last_event_id: str | None) -> dict[str, str]:
    """Of a legacy GET."""
    headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity", **session.headers()}
    if last_event_id is not None:
        headers["Last-Event-ID"] = last_event_id
    return headers


def stands_apart(out: Outbound) -> bool:
    """What lasts, or must not wait behind calls, takes no connection from them."""
    return out.request_id is None or out.method == LISTEN


def _accepted_coding(method: str) -> str:
    """Lists are long and come whole. Anything else may be a stream, which a coding would hold up
    on its way."""
    return "gzip, deflate" if method.endswith("/list") else "identity"
