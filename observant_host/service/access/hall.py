"""What stands before every request of a network listener, and beside every answer.

Nothing of a request is acted on before its target, `Host` and `Origin` are judged; a body that does
not come is not waited for. Whatever is refused here or behind is told as JSON, and counted.
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
from observant_host.service.access.front import front_of
from observant_host.service.access.headers import HEADERS, PAGE_POLICY, PREFLIGHT, SHARED
from observant_host.service.access.places import group_of
from observant_host.service.access.refused import Refused, problem
from observant_host.service.access.whole_answer import WholeAnswer
from observant_host.telemetry.vocabulary import HttpAnswered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping

    from observant_host.config import ServiceSettings
    from observant_host.service.access.addresses import Address
    from observant_host.service.access.asked import Asked
    from observant_host.service.access.identify import Access, Tell
    from observant_host.service.callers import Caller
    from observant_host.timing.clock import Clock

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
    Post = Callable[[Asked, Caller], Awaitable[web.StreamResponse]]
    TellRefusal = Callable[[web.Request, web.HTTPException], web.StreamResponse | None]

BODY_S: Final = 30.0
"""For a request's body, once its head is here: a megabyte over a bad line."""
HEAD_S: Final = 75.0
"""A connection without a whole head is closed after so long. Longer than the minute for which usual
proxies keep an idle connection, or they would send a request into a closing one."""

MAX_HOSTS: Final = 64
"""Spellings of our name that are not judged anew; where every name is let in there is no end."""

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
        self._hosts: set[str] = set()
        self._answered: dict[tuple[object, int], HttpAnswered] = {}

    def guard(self, app: web.Application, *, refusal: TellRefusal = lambda *_: None) -> None:
        """Stand before everything else of this application. `refusal` may tell in its own words
        what the router refused."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            if (front := front_of(request)) is not None:
                front.begun()
            code = 500
            try:
                try:
                    if (flaw := target_flaw(request.raw_path)) is not None:
                        response: web.StreamResponse = _json(400, problem("bad_target", flaw))
                    else:
                        self._check_source(request)
                        if request.method == "OPTIONS" and self._is_named(request):
                            response = web.Response(status=204, headers=PREFLIGHT)
                        elif request.content.is_eof():
                            response = await handler(request)
                        else:
                            response = await self._handled(request, handler)
                except Refused as refused:
                    response = _json(refused.status, refused.body, headers=refused.headers)
                except web.HTTPException as error:
                    told = refusal(request, error)
                    response = _as_json(error, request) if told is None else told
                except web.RequestPayloadError:
                    response = _unreadable()
                code = response.status
            except asyncio.CancelledError:
                code = 499
                raise
            finally:
                route = request.match_info.route.resource
                self._tell(self._fact(route, group_of(request), code))
            if front is not None:
                front.answered(request, response)
            return response

        app.middlewares.append(guarded)
        app.on_response_prepare.append(self._add_headers)

    async def answered(
        self, post: Post, route: str, asked: Asked, caller: Caller
    ) -> web.StreamResponse:
        """As `guard`, of a request that it would let in."""
        code = 500
        try:
            try:
                response = await post(asked, caller)
            except web.HTTPException as error:
                response = _as_json(error, asked.request)
            except Exception as error:  # noqa: BLE001 - logged and told as aiohttp does it, but with our headers
                response = asked.request.protocol.handle_error(asked.request, exc=error)
            code = 200 if type(response) is WholeAnswer else response.status
        except asyncio.CancelledError:
            code = 499
            raise
        finally:
            self._tell(self._answered.get((route, code)) or self._fact(route, route, code))
        if type(response) is not WholeAnswer and not response.prepared:
            _complete(response.headers)
        return response

    def _fact(self, route: object, group: str, code: int) -> HttpAnswered:
        """As many as there are routes and codes."""
        key = (route, code)
        if (known := self._answered.get(key)) is None:
            known = self._answered[key] = HttpAnswered(route=group, code=str(code))
        return known

    def _check_source(self, request: web.Request) -> None:
        headers = request.headers
        host, origins = headers.getall("Host", ()), headers.getall("Origin", ())
        refused = None
        if len(host) != 1 or (host[0] not in self._hosts and not self._is_ours(host[0])):
            refused = Refused("host")
        elif origins and any(not self._lets_in(one, request) for one in origins):
            refused = Refused("origin")
        if refused is not None:
            self._access.note(refused, request)
            raise refused

    def _is_ours(self, host: str) -> bool:
        """Remembered for the names that we are really called by."""
        fits = host_fits(host, self._gate)
        if fits and len(self._hosts) < MAX_HOSTS:
            self._hosts.add(host)
        return fits

    def _lets_in(self, origin: str, request: web.Request) -> bool:
        return origin_fits(origin, self._gate, scheme=request.scheme, host=request.host)

    def _is_named(self, request: web.Request) -> bool:
        """Whether the page that asks is one that somebody wrote into the configuration."""
        return request.headers.get("Origin", "").lower() in self._gate.origins

    async def _handled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A body that is still to come has its time; who reads it is told when that is over."""
        content = request.content

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
        _complete(headers)


class _Late(Exception):
    """The body did not come."""


def _complete(headers: MutableMapping[str, str]) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)


def _late() -> web.Response:
    response = _json(408, problem("late", f"the body did not come within {BODY_S:g} s"))
    response.force_close()
    return response


def _unreadable() -> web.Response:
    response = _json(400, problem("body", "the body is not encoded as its headers say"))
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
