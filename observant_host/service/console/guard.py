"""Who looks at the console: by a session of a browser, or by a token in the header.

Where no token is configured there is nobody to ask: whoever reaches the listener is on this
machine. Forms are judged alike in both cases, for a page elsewhere can send one too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

import msgspec
from aiohttp import web

from observant_host.service.access import Refused
from observant_host.service.callers import Caller
from observant_host.service.console.sessions import COOKIE, LASTS_S, Session, from_here

if TYPE_CHECKING:
    from observant_host.service.console.sessions import Sessions

MAX_PATH: Final = 512


class Keeper(Protocol):
    """The part of `service.access.Access` that the console needs."""

    @property
    def is_open(self) -> bool: ...

    async def identify(self, request: web.Request, scope: str) -> Caller: ...

    async def sign_in(self, secret: str, scope: str) -> tuple[Caller, str]: ...

    async def resume(self, name: str, mark: str, scope: str) -> Caller: ...


class Arrived(Exception):
    """A page elsewhere led here, so that the browser kept the session's cookie back: it sends it
    once a page of ours leads on. Source: RFC 6265bis 5.2, "Strict" enforcement."""

    def __init__(self, back: str) -> None:
        self.back = back
        super().__init__(back)


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One request of somebody who may be here. `fresh`: the session's cookie is still to be set."""

    caller: Caller
    session: Session
    fresh: bool

    def may(self, scope: str) -> bool:
        return scope in self.caller.scopes


class Guard:
    """Lets visits in; sets and reads the cookie."""

    def __init__(self, keeper: Keeper, sessions: Sessions) -> None:
        self._keeper = keeper
        self._sessions = sessions

    @property
    def closed(self) -> bool:
        """Whether somebody has to sign in."""
        return not self._keeper.is_open

    async def visit(self, request: web.Request, scope: str = "read") -> Visit:
        """Raises Refused, Arrived, and for a page without a session a redirect to the sign-in."""
        found = self.session(request)
        if found is None and request.headers.get("Sec-Fetch-Site") == "cross-site":
            raise Arrived(back_of(request.path_qs))
        session = found or self._sessions.begin()
        if self._keeper.is_open or "Authorization" in request.headers:
            caller = await self._keeper.identify(request, scope)
        elif session.token:
            try:
                caller = await self._keeper.resume(session.token, session.mark, scope)
            except Refused as refused:
                if refused.status != 401:
                    raise
                raise self._to_sign_in(request) from None
        else:
            raise self._to_sign_in(request)
        return Visit(caller=caller, session=session, fresh=found is None)

    def _to_sign_in(self, request: web.Request) -> Exception:
        if request.method != "GET":
            return Refused("missing", scope="read")
        back = quote(request.path_qs[:MAX_PATH], safe="")
        return web.HTTPSeeOther(f"/console/login?back={back}")

    async def form(self, request: web.Request, scope: str) -> tuple[Visit, dict[str, str]]:
        """A visit that sent a form of ours, and its text fields. Raises Refused, HTTPForbidden."""
        fields = await self.fields(request)
        return await self.visit(request, scope), fields

    async def fields(self, request: web.Request) -> dict[str, str]:
        """Of a form that a page of ours sent in this session. Raises HTTPForbidden."""
        headers = request.headers
        site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
        if not from_here(site=site, origin=origin, host=headers.get("Host")):
            raise web.HTTPForbidden(text="This form was not sent by a page of this host.")
        sent = await request.post()
        fields = {name: value for name, value in sent.items() if isinstance(value, str)}
        session = self.session(request)
        if session is None or not self._sessions.fits(session, fields.get("word", "")):
            raise web.HTTPForbidden(
                text="This page is from an earlier session: open it again, then repeat it."
            )
        return fields

    async def sign_in(self, secret: str) -> Session:
        """A new session for whoever has this token. Raises Refused."""
        caller, mark = await self._keeper.sign_in(secret, "read")
        return self._sessions.begin(caller.principal, mark=mark)

    def session(self, request: web.Request) -> Session | None:
        return self._sessions.read(request.cookies.get(COOKIE))

    def begin(self) -> Session:
        return self._sessions.begin()

    def sign_out(self, request: web.Request) -> Session:
        """The session ends; the one that follows is nobody's."""
        if (session := self.session(request)) is not None:
            self._sessions.end(session)
        return self._sessions.begin()

    def word(self, session: Session) -> str:
        return self._sessions.word(session)

    def keep(self, response: web.StreamResponse, session: Session, *, secure: bool) -> None:
        """Set the session's cookie."""
        response.set_cookie(
            COOKIE,
            self._sessions.cookie(session),
            max_age=LASTS_S,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=secure,
        )


def back_of(address: str | None) -> str:
    """Where a form leads back to: a page of the console, else its first."""
    if address and address.startswith("/console/") and len(address) <= MAX_PATH:
        return "".join(char for char in address if char.isprintable() and char != "\\")
    return "/"
