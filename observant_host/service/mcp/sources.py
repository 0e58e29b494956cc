"""From where a browser may be sent to us: no page of somebody else's may reach a local host.

Source: MCP 2026-07-28 basic/transports/streamable-http › Security Warning (DNS rebinding).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from observant_host.service.access import is_loopback

if TYPE_CHECKING:
    from observant_host.config import ServiceSettings


def check_source(request: web.Request, settings: ServiceSettings) -> None:
    """Raises HTTPForbidden for a foreign `Host` or `Origin`."""
    if not _is_ours(request.headers.get("Host", ""), settings):
        raise web.HTTPForbidden(text="this Host is not served here; see [service] allowed_hosts")
    origin = request.headers.get("Origin")
    if origin is not None and origin not in settings.allowed_origins and not _is_local(origin):
        raise web.HTTPForbidden(text="this Origin may not ask here; see [service] allowed_origins")


def _is_ours(host: str, settings: ServiceSettings) -> bool:
    name = _hostname(f"//{host}")
    if name is None:
        return False
    bound = settings.listen.rpartition(":")[0].strip("[]")
    open_to_all = not settings.allowed_hosts and not is_loopback(bound)
    return open_to_all or is_loopback(name) or {name, host} & set(settings.allowed_hosts) != set()


def _is_local(origin: str) -> bool:
    name = _hostname(origin)
    return name is not None and is_loopback(name)


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
