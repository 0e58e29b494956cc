"""Who may read over the network: nobody beyond this machine without a token."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from observant_host.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import ServiceSettings, Token

Scope = Literal["mcp", "read", "operate"]


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


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listeners(settings: ServiceSettings, tokens: Mapping[str, Token]) -> dict[str, Address]:
    """{"admin": …, "mcp": …, "metrics": …} (the latter two where they have listeners of their own;
    without admin_listen agents come to the first).

    Raises ConfigError where one is reachable from other machines and no token is configured.
    """
    found = {"admin": parse_address(settings.admin_listen or settings.listen, key="listen")}
    if settings.admin_listen is not None:
        found["mcp"] = parse_address(settings.listen, key="listen")
    if settings.metrics_listen is not None:
        found["metrics"] = parse_address(settings.metrics_listen, key="metrics_listen")
    open_ones = [f"{host}:{port}" for host, port in found.values() if not is_loopback(host)]
    if open_ones and not tokens:
        raise ConfigError(
            [
                (
                    f"service: {' and '.join(open_ones)} can be reached from other machines and no "
                    "token is configured; add a [tokens.NAME] table or listen on 127.0.0.1"
                )
            ]
        )
    return found


class Access:
    """Bearer tokens, by their digests only. Without any, everything local is allowed."""

    def __init__(self, tokens: Mapping[str, Token]) -> None:
        self._digests = {name: (_digest(name, one), one.scopes) for name, one in tokens.items()}

    def allows(self, authorization: str | None, scope: Scope) -> bool:
        """Whether this `Authorization` header has a token with that scope."""
        if not self._digests:
            return True
        kind, _, secret = (authorization or "").partition(" ")
        if kind.lower() != "bearer":
            return False
        given = hashlib.sha256(secret.strip().encode()).hexdigest()
        allowed = [
            scope in scopes
            for digest, scopes in self._digests.values()
            if hmac.compare_digest(digest, given)
        ]
        return any(allowed)


def _digest(name: str, token: Token) -> str:
    try:
        if token.sha256 is not None:
            return token.sha256.removeprefix("sha256:").lower()
        if token.file is not None:
            secret = Path(token.file).read_text(encoding="utf-8").strip()
        else:
            secret = os.environ[token.env or ""]
    except (OSError, KeyError, UnicodeDecodeError) as error:
        raise ConfigError([_unreadable(name, token, error)]) from None
    return hashlib.sha256(secret.encode()).hexdigest()


def _unreadable(name: str, token: Token, error: Exception) -> str:
    """Says nothing of the value: where a path or a variable belongs, a token may have been put."""
    key = "file" if token.file is not None else "env"
    why = error.strerror if isinstance(error, OSError) else type(error).__name__
    what = "a readable file" if key == "file" else "a variable that is set"
    return f"tokens.{name}.{key}: its secret cannot be read ({why}); it must name {what}"
