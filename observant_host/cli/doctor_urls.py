"""How `doctor` looks at servers behind a URL: it connects, and says nothing."""

from __future__ import annotations

import shutil
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from observant_host.cli.doctor_checks import LOOPBACK, Url
from observant_host.config import HttpServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from observant_host.config import ServerConfig

AT_ONCE: Final = 8
CONNECT_S: Final = 3.0
PORTS: Final = {"http": 80, "https": 443}


def look_at_urls(servers: Sequence[ServerConfig]) -> dict[str, Url]:
    """By server. Connects to each host, a few at a time, and sends nothing."""
    wanted = [(one.name, one.launch) for one in servers if isinstance(one.launch, HttpServer)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip([name for name, _ in wanted], pool.map(_look, wanted), strict=True))


def _look(one: tuple[str, HttpServer]) -> Url:
    launch = one[1]
    program = launch.headers_command[0] if launch.headers_command else ""
    return Url(
        unreachable=_unreachable(launch.url),
        ca_problem=_ca_problem(launch.ca_bundle),
        missing_program="" if not program or shutil.which(program) else program,
    )


def _unreachable(url: str) -> str:
    try:
        parts = urlsplit(url)
        place = (parts.hostname or "", parts.port or PORTS.get(parts.scheme, 80))
        if _has_proxy(parts.scheme, place[0]):
            return ""
        with socket.create_connection(place, timeout=CONNECT_S):
            return ""
    except ValueError:
        return "it is no URL"
    except OSError as error:
        return str(error.strerror or "no answer")


def _has_proxy(scheme: str, host: str) -> bool:
    return scheme in getproxies() and host not in LOOPBACK and not proxy_bypass(host)


def _ca_problem(path: str | None) -> str:
    if path is None:
        return ""
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:  # ssl.SSLError is one
        return str(error.strerror or error)
    return ""
