"""Where the listeners are: none beyond this machine without a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from observant_host.decisions.http_door import is_loopback
from observant_host.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import ServiceSettings, Token


class Address(NamedTuple):
    """Of a listener; port 0: any free one."""

    host: str
    port: int


def parse_address(text: str, *, key: str) -> Address:
    """ "127.0.0.1:8700", "[::1]:8700", "localhost:0". Raises ConfigError naming the key."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(
            [f"service.{key}: {text!r} is no address; write host:port, e.g. 127.0.0.1:8700"]
        )
    return Address(host.strip("[]"), int(port))


def listeners(settings: ServiceSettings, tokens: Mapping[str, Token]) -> dict[str, Address]:
    """{"admin": …, "mcp": …, "metrics": …} (the latter two where they have listeners of their own;
    without admin_listen agents come to the first).

    Raises ConfigError where one is reachable from other machines and no token is configured.
    """
    found = {"admin": parse_address(settings.admin_listen or settings.listen, key="listen")}
    if settings.admin_listen not in (None, settings.listen):
        found["mcp"] = parse_address(settings.listen, key="listen")
    if settings.metrics_listen is not None:
        found["metrics"] = parse_address(settings.metrics_listen, key="metrics_listen")
    open_ones = [f"{host}:{port}" for host, port in found.values() if not is_loopback(host)]
    if open_ones and not tokens and settings.jwt is None:
        raise ConfigError(
            [
                (
                    f"service: {' and '.join(open_ones)} can be reached from other machines and no "
                    "token is configured; add a [tokens.NAME] table or listen on 127.0.0.1"
                )
            ]
        )
    return found
