"""What the head of an HTTP request must be like before anybody looks at it further.

A web page that a user of this machine visits can make the browser send requests here. It cannot
choose their `Host` (that is the name it was loaded from, whatever address the name resolves to) nor
leave out their `Origin`: so both are checked, and a page from elsewhere gets nowhere.

Source: MCP 2026-07-28 basic/transports/streamable-http › Security Warning; RFC 9110 7.2 and
15.5.20; RFC 6454 7.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

ANY: Final = "*"
"""In `allowed_hosts`: every name. For a proxy that checks itself."""


class Gate(msgspec.Struct, frozen=True):
    """What one listener lets in. `hosts` are lower-case names without a port, "*.example.com" for
    every name below one. `addresses`: every IP address counts as a name of ours; a page can have no
    address for its name unless it was loaded from that address. `origins`: exactly these, as
    browsers write them; empty: those of this machine."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    addresses: bool = False


def gate(
    listening_at: str, *, hosts: Iterable[str] = (), origins: Iterable[str] = (), loopback: bool
) -> Gate:
    """The gate of a listener at that host or address. Beyond loopback a browser that was tricked
    has no token: every name is let in there unless `hosts` says which."""
    own = {listening_at.lower(), "localhost"}
    if not loopback and not (hosts := tuple(hosts)):
        own.add(ANY)
    return Gate(
        hosts=frozenset(own.union(host_name(one) or one.lower() for one in hosts)),
        origins=frozenset(one.rstrip("/").lower() for one in origins),
        addresses=not loopback,
    )


def host_name(header: str) -> str | None:
    """The name of a `Host` header, in lower case, without port and brackets; None where there is
    none."""
    match = _HOST.fullmatch(header)
    return (match[1] or match[2]).lower() if match else None


def host_fits(header: str | None, gate: Gate) -> bool:
    """Whether a request that calls us by that `Host` means us."""
    name = host_name(header or "")
    if name is None:
        return False
    if ANY in gate.hosts or name in gate.hosts or is_loopback(name):
        return True
    if gate.addresses and _address(name) is not None:
        return True
    parents = (name[at:] for at, letter in enumerate(name) if letter == ".")
    return any(ANY + parent in gate.hosts for parent in parents)


def origin_fits(origin: str, gate: Gate, *, scheme: str, host: str) -> bool:
    """Whether a page of that origin may ask; `scheme` and `host` (with its port) are how we were
    called, and the host was found to be ours: our own pages may."""
    plain = origin.lower()
    if plain == f"{scheme}://{host}".lower() or plain in gate.origins:
        return True
    if gate.origins:
        return False
    try:
        parts = urlsplit(plain)
        name = parts.hostname
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and name is not None and is_loopback(name)


def is_loopback(host: str) -> bool:
    """Of this machine alone, by its name or address."""
    if host.lower() == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def target_flaw(target: str) -> str | None:
    """What is wrong with a request's target; None for what means one path and nothing else.

    No route of ours has a path that needs any of these. They exist to look like one path to who
    checks and like another to who serves, and are refused instead of mended.
    """
    if _PLAIN.fullmatch(target):
        return None
    path = target.partition("?")[0]
    if not path.startswith("/"):
        return "the target must be a path"
    if _STRANGE.search(target):
        return "the target has characters that no URL has"
    if _TRICKS.search(path):
        return "the path has an encoded slash, backslash, percent sign or control character"
    if _DOTS.search(path):
        return "the path has an empty segment, or one of dots"
    return None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+))(?::\d{1,5})?", re.ASCII)
_PLAIN: Final = re.compile(r"(?:/[A-Za-z0-9_-]+)+", re.ASCII)
"""What nearly every target is: told apart first."""
_STRANGE: Final = re.compile(r"[^!-~]|[\\#<>\"^`{|}]")
_TRICKS: Final = re.compile(r"%(?:2f|5c|25|0[0-9a-f]|1[0-9a-f]|7f)|%(?![0-9a-f]{2})", re.IGNORECASE)
_DOTS: Final = re.compile(r"//|/(?:\.|%2e){1,2}(?=/|$)", re.IGNORECASE)
