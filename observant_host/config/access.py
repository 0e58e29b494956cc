"""What must hold among the tables that say who may ask: tokens, profiles, JWTs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from observant_host.config.model import JwtSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from observant_host.config.model import Profile, ServiceSettings, Token


def jwt_settings(written: Mapping[str, Any]) -> tuple[JwtSettings | None, list[str]]:
    """The table `[service.jwt]`, or sentences why it cannot be used."""
    problems = list(_jwt_problems(written))
    return (None if problems else JwtSettings(**written)), problems


def access_problems(
    service: ServiceSettings,
    tokens: Mapping[str, Token],
    profiles: Mapping[str, Profile],
    *,
    servers: Sequence[str],
) -> Iterator[str]:
    """Sentences, each naming its key."""
    for name, token in tokens.items():
        given = [key for key in ("sha256", "file", "env") if getattr(token, key) is not None]
        if len(given) != 1:
            found = ", ".join(given) or "none"
            yield f"tokens.{name} needs exactly one of sha256, file, env; found: {found}"
        if token.profile is not None and token.profile not in profiles:
            yield f"tokens.{name}.profile names no [profiles.NAME] table; seen: {token.profile!r}"
    for name, profile in profiles.items():
        missing = [server for server in profile.servers if server not in servers]
        if missing:
            yield f"profiles.{name}.servers names no server: {', '.join(missing)}"
    if service.jwt is not None and service.jwt.profile not in (None, *profiles):
        yield "service.jwt.profile names no [profiles.NAME] table"
    if (service.tls_cert is None) != (service.tls_key is None):
        yield "service.tls_cert and service.tls_key belong together; give both or neither"


def emptied(profiles: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Sentences about lists that were written and are empty: they would show everything."""
    for name, written in profiles.items():
        lists = {"servers": written.get("servers"), "tools.allow": _allowed(written)}
        for key, value in lists.items():
            if value == ():
                yield f"profiles.{name}.{key} is empty; name something, or leave it out to show all"


def _allowed(written: Mapping[str, Any]) -> object:
    return written.get("tools", {}).get("allow")


def _jwt_problems(written: Mapping[str, Any]) -> Iterator[str]:
    for key in ("issuer", "audience"):
        if not written.get(key):
            yield f"service.jwt.{key} is missing: it says which tokens are meant for this host"
    given = [key for key in ("jwks_url", "jwks_file") if key in written]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        yield f"service.jwt needs exactly one of jwks_url, jwks_file; found: {found}"
    if _is_open_to_others(written.get("jwks_url", "")):
        yield "service.jwt.jwks_url must begin with https://: whoever changes the keys makes tokens"
    if written.get("algorithms") == ():
        yield "service.jwt.algorithms is empty: no token would be valid"


def _is_open_to_others(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in HERE


HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that nobody stands between."""
