"""What a person does: forms that act, each with who and why, and back to the page it came from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from observant_host.decisions.acts import Act
from observant_host.errors import HostError, InvalidCall
from observant_host.service import views
from observant_host.service.access import Refused
from observant_host.service.api.bodies import CaptureBody, LogLevelBody
from observant_host.service.console.guard import back_of
from observant_host.service.console.responses import HEADERS
from observant_host.service.whole import calls_of, needs_whole

if TYPE_CHECKING:
    from observant_host.service.console.guard import Visit
    from observant_host.service.console.responses import Desk

SWITCHES: Final = (Act.DISABLE, Act.ENABLE)
"""What one tool alone can have."""
MAX_REASON: Final = 1024
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION: Final = re.compile(r"(\d{1,9})\s*([smhdw]?)", re.ASCII)


class Acting:
    """The handlers of POST that change something."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._host = desk.host

    async def act(self, request: web.Request) -> web.Response:
        """`allow`, `reload`, `capture`, or one of `decisions.acts.Act`, on one server; where a form
        names a `tool`, on that alone."""
        visit, fields = await self._desk.guard.form(request, "operate")
        name, verb = request.match_info["name"], fields.get("act", "")
        back = back_of(fields.get("back"))
        who: dict[str, Any] = {
            "principal": visit.caller.principal,
            "reason": fields.get("reason", "")[:MAX_REASON],
        }
        try:
            if not visit.caller.slice.has_server(name):
                raise InvalidCall(f"no server {name!r} is configured", unknown=True)
            for_s = duration_of(fields.get("for", ""))
            tool = fields.get("tool", "").strip()
            if tool:
                _switchable(visit, name, tool, verb)
                on = verb == Act.ENABLE
                await self._host.switch_tool(name, tool, on=on, for_s=for_s, **who)
            elif verb == "reload":
                needs_whole(visit.caller, "a reload")
                await self._host.reload(**who)
            elif verb == "capture":
                seconds = for_s or CaptureBody().for_s
                await self._host.capture(name, for_s=seconds, **who)
            elif verb == "allow":
                await self._host.allow(name, for_s=for_s, **who)
            elif verb in tuple(Act):
                await self._host.act(name, verb, for_s=for_s, **who)
            else:
                raise InvalidCall(f"there is no act {verb!r}", unknown=True)
        except HostError as error:
            return self._not_done(verb, error, back)
        return see(back, done=f"{verb}-tool" if tool else verb)

    async def log_level(self, request: web.Request) -> web.Response:
        """Of the host's own log lines, for a time."""
        visit, fields = await self._desk.guard.form(request, "operate")
        back = "/console/servers"
        try:
            needs_whole(visit.caller, "the log")
            self._host.set_log_level(
                fields.get("level", ""),
                for_s=duration_of(fields.get("for", "")) or LogLevelBody(level="info").for_s,
                principal=visit.caller.principal,
                reason=fields.get("reason", "")[:MAX_REASON],
            )
        except HostError as error:
            return self._not_done("log level", error, back)
        return see(back, done="log-level")

    async def cancel(self, request: web.Request) -> web.Response:
        visit, fields = await self._desk.guard.form(request, "operate")
        call_id = request.match_info["id"]
        try:
            open_calls = calls_of(self._host, visit.caller, self._host.calls_in_flight())
            if call_id not in {one.id for one in open_calls}:
                raise InvalidCall(f"no call {call_id[:32]!r} is open", unknown=True)
            await self._host.cancel_call(
                call_id,
                principal=visit.caller.principal,
                reason=fields.get("reason", "")[:MAX_REASON],
            )
        except HostError as error:
            return self._not_done("cancel", error, "/console/calls")
        return see("/console/calls", done="cancel")

    def _not_done(self, verb: str, error: HostError, back: str) -> web.Response:
        status = views.status_of(error)
        heading = f"{verb[:32].capitalize() or 'It'}: not done"
        return self._desk.problem(heading, str(error), status=status, back=back)


def _switchable(visit: Visit, server: str, tool: str, verb: str) -> None:
    """Raises InvalidCall."""
    if verb not in SWITCHES:
        raise InvalidCall(f"{verb[:32]!r} is nothing that one tool can have", unknown=True)
    if not visit.caller.slice.admits(server, tool):
        raise InvalidCall(f"{server} has no tool {tool[:128]!r}", unknown=True)


class Signing:
    """The sign-in and the sign-out."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._guard = desk.guard

    async def form(self, request: web.Request) -> web.Response:
        if not self._guard.closed:
            return see("/")
        session = self._guard.session(request) or self._guard.begin()
        back = back_of(request.query.get("back"))
        return self._desk.sign_in(request, session, back=back)

    async def sign_in(self, request: web.Request) -> web.Response:
        fields = await self._guard.fields(request)
        back = back_of(fields.get("back"))
        try:
            session = await self._guard.sign_in(fields.get("token", ""))
        except Refused as refused:
            return self._desk.sign_in(
                request,
                self._guard.begin(),
                back=back,
                notice=str(refused),
                status=refused.status,
            )
        response = see(back)
        self._guard.keep(response, session, secure=request.secure)
        return response

    async def sign_out(self, request: web.Request) -> web.Response:
        await self._guard.fields(request)
        response = see("/console/login")
        self._guard.keep(response, self._guard.sign_out(request), secure=request.secure)
        return response


def see(address: str, *, done: str = "") -> web.Response:
    """Go there with GET, so that a reload repeats nothing."""
    joint = "&" if "?" in address else "?"
    location = f"{address}{joint}done={done}" if done else address
    return web.Response(status=303, headers={**HEADERS, "Location": location})


def duration_of(text: str) -> float | None:
    """Seconds of "90", "30m", "12h", "7d", "2w"; None for nothing. Raises InvalidCall."""
    if not text.strip():
        return None
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise InvalidCall(f"for {text[:20]!r}: write a duration such as 30m, 12h or 7d")
    return float(int(match[1]) * _UNITS[match[2] or "s"])
