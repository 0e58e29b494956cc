"""Which proxy a URL is reached through, by the usual environment variables; loopback never.

The library would ask the environment for each request, in a thread, and read ~/.netrc as well.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

from yarl import URL

from observant_host.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SEPARATORS: Final = re.compile(r"[\s,]+")


def proxy_for(url: URL, environment: Mapping[str, str]) -> URL | None:
    """The proxy for this URL, None for a direct connection.

    HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, the lower-case form first. NO_PROXY holds names
    (also of sub-domains), addresses and networks, each with an optional port, or `*`. Raises
    TransportError for a proxy of a kind that cannot be used.
    """
    value = _variable(environment, f"{url.scheme}_proxy") or _variable(environment, "all_proxy")
    host = url.host or ""
    if not value or is_loopback(host):
        return None
    if bypassed(host, url.port, _variable(environment, "no_proxy")):
        return None
    return _usable(value, url.scheme)


def is_loopback(host: str) -> bool:
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _address(name)
    return address is not None and address.is_loopback


def bypassed(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether an entry of NO_PROXY means this host."""
    name = host.lower().rstrip(".")
    return any(_means(entry, name, port) for entry in _SEPARATORS.split(no_proxy.lower()) if entry)


def _means(entry: str, name: str, port: int | None) -> bool:
    if entry == "*":
        return True
    wanted, wanted_port = _split_port(entry)
    if wanted_port is not None and wanted_port != port:
        return False
    address, network = _address(name), _network(wanted)
    if network is not None:
        return address is not None and address in network
    suffix = wanted.removeprefix("*").strip(".")
    return bool(suffix) and (name == suffix or name.endswith(f".{suffix}"))


def _split_port(entry: str) -> tuple[str, int | None]:
    """`host:port`, `[::1]:port`; a bare IPv6 address has colons and no port."""
    match = re.fullmatch(r"\[([^]]+)\](?::(\d+))?|([^:]+):(\d+)", entry)
    if match is None:
        return entry, None
    port = match[2] or match[4]
    return match[1] or match[3], int(port) if port else None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def _usable(value: str, scheme: str) -> URL:
    try:
        proxy = URL(value if "://" in value else f"http://{value}")
    except ValueError:
        proxy = URL()
    if proxy.scheme not in ("http", "https") or not proxy.host:
        raise TransportError(
            f"the proxy that the environment names for {scheme} URLs cannot be used: it must be "
            f"http://HOST:PORT (or set NO_PROXY)"
        )
    return proxy
