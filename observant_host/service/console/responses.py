"""Pages as responses: what every one of them carries, and the headers that keep it to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from observant_host.service.console.render import path
from observant_host.service.console.shown import servers_of, waiting
from observant_host.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.decisions.catalogue import Catalogue
    from observant_host.service.console.guard import Guard, Visit
    from observant_host.service.console.render import Pages
    from observant_host.service.console.sessions import Session
    from observant_host.service.console.shown import Server
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Source: W3C Content Security Policy 3; OWASP HTTP Headers. Nothing inline, nothing from
elsewhere; pictures of results are data."""

NAV: Final = (
    ("needs", "Needs a person", "/"),
    ("servers", "Servers", path("console", "servers")),
    ("catalogue", "Catalogue", path("console", "catalogue")),
    ("calls", "Calls", path("console", "calls")),
    ("timeline", "Timeline", path("console", "timeline")),
    ("call", "Call a tool", path("console", "call")),
)


class Desk:
    """What the handlers share: the host, the templates, and how a page becomes a response."""

    def __init__(self, host: Served, pages: Pages, guard: Guard, *, clock: Clock) -> None:
        self.host = host
        self.pages = pages
        self.guard = guard
        self.clock = clock
        self._version = VERSION

    def servers(self, visit: Visit) -> list[Server]:
        """Those that exist for this caller."""
        here = visit.caller.slice.has_server
        views = [view for view in self.host.servers.values() if here(view.name)]
        return servers_of(views, self.host.config)

    def page(
        self,
        request: web.Request,
        visit: Visit,
        template: str,
        *,
        here: str,
        status: int = 200,
        live: bool = True,
        notice: str = "",
        **facts: Any,
    ) -> web.Response:
        """A page of the console. `live`: it follows what changes."""
        state, weight = self._host_state()
        text = self.pages.render(
            template,
            **{
                **facts,
                "notice": notice,
                "notice_weight": "good",
                "here": here,
                "live": live,
                "nav": NAV,
                "caller": visit.caller,
                "may_operate": visit.may("operate"),
                "waiting": waiting(self.servers(visit)),
                "host_state": state,
                "host_weight": weight,
                "word": self.guard.word(visit.session),
                **self._always(),
            },
        )
        response = self._response(text, status=status)
        if visit.fresh:
            self.guard.keep(response, visit.session, secure=request.secure)
        return response

    def sign_in(
        self,
        request: web.Request,
        session: Session,
        *,
        back: str,
        notice: str = "",
        status: int = 200,
    ) -> web.Response:
        """The form for somebody who has not signed in; sets the session's cookie."""
        word = self.guard.word(session)
        response = self._plain("login.html", status=status, back=back, notice=notice, word=word)
        self.guard.keep(response, session, secure=request.secure)
        return response

    def problem(self, heading: str, message: str, *, status: int, back: str = "/") -> web.Response:
        """Something was not done, and why."""
        return self._plain(
            "problem.html", status=status, heading=heading, message=message, back=back
        )

    def arrived(self, back: str) -> web.Response:
        """A page that leads on to the one that was asked for."""
        return self._plain("arrived.html", status=200, back=back)

    def _plain(self, template: str, *, status: int, notice: str = "", **facts: Any) -> web.Response:
        text = self.pages.render(
            template,
            **facts,
            notice=notice,
            notice_weight="bad",
            live=False,
            caller=None,
            **self._always(),
        )
        return self._response(text, status=status)

    def _always(self) -> dict[str, Any]:
        return {
            "now_ns": self.clock.wall_ns(),
            "closed": self.guard.closed,
            "version": self._version,
        }

    def _response(self, text: str, *, status: int) -> web.Response:
        return web.Response(
            text=text,
            status=status,
            content_type="text/html",
            headers={**HEADERS, "Cache-Control": "no-store"},
        )

    def _host_state(self) -> tuple[str, str]:
        if self.host.draining:
            return "host: draining", "decision"
        return ("host: serving", "good") if self.host.published else ("host: starting", "plain")


def cut(catalogue: Catalogue, at_most: int) -> tuple[dict[str, Any], int]:
    """Its remarks, at most so many of each; and how many are left out."""
    remarks = {
        "collisions": (*catalogue.collisions, *catalogue.prompt_collisions),
        "excluded": catalogue.excluded,
        "missing": catalogue.missing,
    }
    left_out = sum(max(0, len(each) - at_most) for each in remarks.values())
    return {name: each[:at_most] for name, each in remarks.items()}, left_out
