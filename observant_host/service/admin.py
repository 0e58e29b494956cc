"""Health, readiness and metrics: what a supervisor and Prometheus ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from observant_host.service.access.json_web_tokens import RESOURCE, WELL_KNOWN
from observant_host.service.readiness import readiness

if TYPE_CHECKING:
    from observant_host.service.access import Access
    from observant_host.service.access.json_web_tokens import JsonWebTokens
    from observant_host.service.served import Served

JSON: Final = "application/json"


def add_health(app: web.Application, host: Served) -> None:
    """`/healthz`: the loop turns. `/readyz`: 503 until published, by `ready_when`, and while
    draining."""

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        state = readiness(
            host.servers,
            required={one.name for one in host.config.servers if one.required},
            ready_when=host.config.service.ready_when,
            published=host.published,
            draining=host.draining,
        )
        return web.Response(
            body=msgspec.json.encode(state),
            status=200 if state.ready else 503,
            content_type=JSON,
        )

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)


def add_metrics(app: web.Application, host: Served, access: Access | None) -> None:
    """`/metrics`; `access` None: no token needed. Raises what `identify` raises."""

    async def metrics(request: web.Request) -> web.Response:
        if access is not None:
            await access.identify(request, "read")
        body, content_type = await host.metrics(request.headers.get("Accept"))
        return web.Response(body=body, headers={"Content-Type": content_type})

    app.router.add_get("/metrics", metrics)


def add_metadata(app: web.Application, issued: JsonWebTokens) -> None:
    """Where a client gets a token for this host; readable without one. Source: RFC 9728 3."""

    async def metadata(request: web.Request) -> web.Response:
        document = msgspec.json.encode(issued.metadata(request))
        return web.Response(body=document, content_type=JSON)

    app.router.add_get(WELL_KNOWN, metadata)
    app.router.add_get(WELL_KNOWN + RESOURCE, metadata)
