"""What a person reads: every page of the console, whole without any script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions.slices import sliced
from observant_host.decisions.terms import ExclusionReason
from observant_host.errors import HostError
from observant_host.service.console.figures import figures_of
from observant_host.service.console.listed import KINDS, MAX_QUERY, listed, tool_row
from observant_host.service.console.responses import cut
from observant_host.service.console.shown import evidence_of, needing, offered, tally
from observant_host.service.console.timeline import Entry, entry_of, incident_entry, paged
from observant_host.service.whole import calls_of
from observant_host.telemetry.log_lines import LEVELS

if TYPE_CHECKING:
    from aiohttp import web

    from observant_host.config import ServerConfig
    from observant_host.decisions.catalogue import Catalogue
    from observant_host.service.console.guard import Visit
    from observant_host.service.console.responses import Desk

REMARKS: Final = 200
"""Of each kind, below the catalogue."""
DECISIONS_OF_ONE: Final = 12
"""On a server's own page."""
TOOLS_OF_ONE: Final = 200
IN_FLIGHT: Final = 200
RECENT: Final = 100

DONE: Final = {
    "allow": "legacy is allowed",
    "retry": "it was tried again",
    "probe": "it was probed",
    "restart": "it was restarted",
    "hold": "it is held",
    "disable": "it is disabled",
    "drain": "it is drained",
    "enable": "it is enabled",
    "reload": "the configuration was read again",
    "cancel": "the call was cancelled",
    "capture": "its frames go to a private file below `capture` in the state folder, for a time",
    "disable-tool": "the tool is off",
    "enable-tool": "the tool is on",
    "log-level": "the log has another level, for a time",
}
"""What a page says after an act."""


class Reading:
    """The handlers of GET."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._host = desk.host

    async def needs(self, request: web.Request) -> web.Response:
        visit = await self._desk.guard.visit(request)
        servers = self._desk.servers(visit)
        needed = needing(servers)
        return self._desk.page(
            request,
            visit,
            "needs.html",
            here="needs",
            needs=needed,
            calm="Nothing waits for a person: no decision is open and no server is down.",
            tally=tally(servers),
            tools=len(self._catalogue(visit).tools),
            in_flight=len(self._host.calls_in_flight()) if self._host.published else 0,
            notice=_notice(request),
        )

    async def servers(self, request: web.Request) -> web.Response:
        visit = await self._desk.guard.visit(request)
        servers = self._desk.servers(visit)
        return self._desk.page(
            request,
            visit,
            "servers.html",
            here="servers",
            servers=servers,
            levels=LEVELS,
            level=self._host.config.telemetry.log_level,
            notice=_notice(request),
        )

    async def server(self, request: web.Request) -> web.Response:
        visit = await self._desk.guard.visit(request)
        name = request.match_info["name"]
        server = next((one for one in self._desk.servers(visit) if one.view.name == name), None)
        if server is None:
            return self._desk.problem(
                "No such server", f"No server is named {name} here.", status=404
            )
        view = server.view
        catalogue = self._catalogue(visit)
        tools = [entry for entry in catalogue.tools if entry.server == name]
        denied = [
            one
            for one in catalogue.excluded
            if (one.server, one.kind, one.reason) == (name, "tool", ExclusionReason.DENIED)
        ]
        return self._desk.page(
            request,
            visit,
            "server.html",
            here="servers",
            server=server,
            says_it_is=_says_it_is(view.server_info),
            offered=offered(server, self._configured(name)),
            figures=figures_of(name, await self._exposition()),
            evidence=evidence_of(view),
            page=paged(self._decisions(visit, name), limit=DECISIONS_OF_ONE),
            tools=[tool_row(entry) for entry in tools[:TOOLS_OF_ONE]],
            local_names=[entry.local_name for entry in tools[:TOOLS_OF_ONE]],
            off=denied[:TOOLS_OF_ONE],
            notice=_notice(request),
        )

    async def catalogue(self, request: web.Request) -> web.Response:
        visit = await self._desk.guard.visit(request)
        catalogue = self._catalogue(visit)
        asked = request.query.get("kind")
        kind = next((one for one in KINDS if one == asked), KINDS[0])
        query = request.query.get("q", "")[:MAX_QUERY]
        remarks, left_out = cut(catalogue, REMARKS)
        return self._desk.page(
            request,
            visit,
            "catalogue.html",
            here="catalogue",
            catalogue=catalogue,
            kind=kind,
            kinds=KINDS,
            query=query,
            found=listed(catalogue, kind, query),
            left_out=left_out,
            **remarks,
        )

    async def calls(self, request: web.Request) -> web.Response:
        visit = await self._desk.guard.visit(request)
        published = self._host.published
        open_calls = self._host.calls_in_flight() if published else []
        recent = self._host.recent_calls() if published else []
        return self._desk.page(
            request,
            visit,
            "calls.html",
            here="calls",
            in_flight=calls_of(self._host, visit.caller, open_calls)[:IN_FLIGHT],
            recent=calls_of(self._host, visit.caller, recent)[:RECENT],
            notice=_notice(request),
        )

    async def timeline(self, request: web.Request) -> web.Response:
        visit = await self._desk.guard.visit(request)
        chosen = request.query.get("server", "")
        entries = self._decisions(visit, chosen)
        incidents, why_not = await self._incidents(visit, chosen)
        number = request.query.get("page", "1")
        page = paged(
            [*entries, *incidents],
            number=int(number) if number.isascii() and number.isdigit() and len(number) < 6 else 1,
            until=request.query.get("until", "")[:40],
        )
        return self._desk.page(
            request,
            visit,
            "timeline.html",
            here="timeline",
            page=page,
            older=str(page.number + 1),
            newer=str(page.number - 1),
            chosen=chosen,
            names=[one.view.name for one in self._desk.servers(visit)],
            no_incidents=why_not,
        )

    def _catalogue(self, visit: Visit) -> Catalogue:
        return sliced(self._host.catalogue, visit.caller.slice)

    def _configured(self, name: str) -> ServerConfig | None:
        return next((one for one in self._host.config.servers if one.name == name), None)

    async def _exposition(self) -> str:
        body, _ = await self._host.metrics(None)
        return body.decode()

    def _decisions(self, visit: Visit, server: str) -> list[Entry]:
        if not self._host.published and not self._host.servers:
            return []
        part = visit.caller.slice
        try:
            recent = self._host.recent_decisions()
        except HostError:
            return []
        told = [
            entry_of(one)
            for one in recent
            if (not server or one["server"] == server)
            and (part.is_whole or (one["server"] and part.has_server(one["server"])))
        ]
        return [entry for entry in told if entry is not None]

    async def _incidents(self, visit: Visit, server: str) -> tuple[list[Entry], str]:
        try:
            found = await self._host.incidents(server=server or None)
        except HostError as error:
            return [], f"Incidents of the last day are not shown: {error}"
        seen = visit.caller.slice.has_server
        return [incident_entry(one) for one in found["incidents"] if seen(one["server"])], ""


def _says_it_is(info: Any) -> str:
    """A server's own name and version."""
    return " ".join(str(info[key]) for key in ("name", "version") if key in info) if info else ""


def _notice(request: web.Request) -> str:
    """What was done just now, where the address says so: in words of ours only."""
    done = DONE.get(request.query.get("done", ""))
    return f"Done: {done}." if done is not None else ""
