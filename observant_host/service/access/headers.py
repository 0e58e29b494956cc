"""Headers beside every answer of a network listener.

Source: OWASP Secure Headers Project; Fetch, CORS protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADERS: Final[Mapping[str, str]] = {
    "Server": "observant-host",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Of every answer that has not its own."""
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SHARED: Final[Mapping[str, str]] = {
    "Access-Control-Expose-Headers": "Mcp-Session-Id, WWW-Authenticate, Retry-After",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Vary": "Origin",
}
PREFLIGHT: Final[Mapping[str, str]] = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": (
        "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, "
        "Mcp-Method, Mcp-Name, traceparent, tracestate, baggage"
    ),
    "Access-Control-Max-Age": "600",
}
