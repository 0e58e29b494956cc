"""What stands before every request of a network listener, and beside every answer.

Nothing of a request is acted on before its target, `Host` and `Origin` are judged; a body that does
not come is not waited for. Whatever is refused here or behind is told as JSON, and counted.

Source: OWASP Secure Headers Project; Fetch, CORS protocol.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web

from observant_host.decisions.http_door import (
    gate,
    host_fits,
    is_loopback,
    origin_fits,
    target_flaw,
)
from observant_host.service.access.places import group_of
from observant_host.service.access.refused import Refused, problem
from observant_host.telemetry.vocabulary import HttpAnswered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from observant_host.config import ServiceSettings
    from observant_host.service.access.addresses import Address
    from observant_host.service.access.identify import Access, Tell
    from observant_host.timing.clock import Clock

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

BODY_S: Final = 30.0
"""For a request's body, once its head is here: a megabyte over a bad line."""
HEAD_S: Final = 75.0
"""A connection without a whole head is closed after so long. Longer than the minute for which usual
proxies keep an idle connection, or they would send a request into a closing one."""

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
SENTENCES: Final[Mapping[int, str]] = {
    404: "there is nothing at this path",
    405: "{method} is not served at this path; there is: {allow}",
    413: "the body is larger than [host] max_message_bytes",
}


class Hall:
    """Of one listener."""

    def __init__(
        self, settings: ServiceSettings, at: Address, *, access: Access, tell: Tell, clock: Clock
    ) -> None:
        self._gate = gate(
            at.host,
            hosts=settings.allowed_hosts,
            origins=settings.allowed_origins,
            loopback=is_loopback(at.host),
        )
        self._access = access
        self._tell = tell
        self._clock = clock

    def guard(self, app: web.Application) -> None:
        """Stand before everything else of this application."""

        @web.middleware
        async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
            code = "500"
            try:
                response = await self._answered(request, handler)
                code = str(response.status)
            except asyncio.CancelledError:
                code = "499"
                raise
            finally:
                self._tell(HttpAnswered(route=group_of(request), code=code))
            return response

        app.middlewares.append(counted)
        app.on_response_prepare.append(self._add_headers)

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if (flaw := target_flaw(request.raw_path)) is not None:
                return _json(400, problem("bad_target", flaw))
            self._check_source(request)
            if request.method == "OPTIONS" and self._is_named(request):
                return web.Response(status=204, headers=PREFLIGHT)
            return await self._handled(request, handler)
        except Refused as refused:
            return _json(refused.status, refused.body, headers=refused.headers)
        except web.HTTPException as error:
            return _as_json(error, request)

    def _check_source(self, request: web.Request) -> None:
        host = request.headers.getall("Host", [])
        refused = None
        if len(host) != 1 or not host_fits(host[0], self._gate):
            refused = Refused("host")
        elif any(not self._lets_in(one, request) for one in request.headers.getall("Origin", [])):
            refused = Refused("origin")
        if refused is not None:
            self._access.note(refused, request)
            raise refused

    def _lets_in(self, origin: str, request: web.Request) -> bool:
        return origin_fits(origin, self._gate, scheme=request.scheme, host=request.host)

    def _is_named(self, request: web.Request) -> bool:
        """Whether the page that asks is one that somebody wrote into the configuration."""
        return request.headers.get("Origin", "").lower() in self._gate.origins

    async def _handled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A body that is still to come has its time; who reads it is told when that is over."""
        content = request.content
        if content.is_eof():
            return await handler(request)

        def expire() -> None:
            if not content.is_eof():
                content.set_exception(_Late())

        timer = self._clock.call_at(self._clock.monotonic() + BODY_S, expire)
        try:
            return await handler(request)
        except _Late:
            return _late()
        finally:
            timer.cancel()

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        headers = response.headers
        if headers.get("Server", "").startswith("Python"):
            del headers["Server"]
        if response.content_type == "text/html":
            headers.setdefault("Content-Security-Policy", PAGE_POLICY)
        if self._is_named(request):
            headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
            headers.update(SHARED)
        for name, value in HEADERS.items():
            headers.setdefault(name, value)


class _Late(Exception):
    """The body did not come."""


def _late() -> web.Response:
    response = _json(408, problem("late", f"the body did not come within {BODY_S:g} s"))
    response.force_close()
    return response


def _as_json(error: web.HTTPException, request: web.Request) -> web.StreamResponse:
    """What the router or a handler raised, but for redirects."""
    if error.status < 400:
        raise error
    allow = error.headers.get("Allow", "")
    sentence = SENTENCES.get(error.status, error.text or error.reason)
    body = problem("http", sentence.format(method=request.method[:16], allow=allow))
    kept = ("Allow", "WWW-Authenticate", "Retry-After")
    return _json(
        error.status, body, headers={k: error.headers[k] for k in kept if k in error.headers}
    )


def _json(status: int, body: bytes, *, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
