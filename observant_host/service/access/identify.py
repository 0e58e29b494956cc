"""Who asks: from a request's `Authorization` to a Caller, or to the reason why nobody is let in.

The token is looked at here and nowhere else; it goes on to no server.
Source: MCP 2026-07-28 basic/authorization; RFC 6750 2.1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from observant_host.service.access.json_web_tokens import JsonWebTokens
from observant_host.service.access.places import group_of
from observant_host.service.access.refused import Refused
from observant_host.service.access.tokens import Tokens, digest_of
from observant_host.service.callers import LOCAL, Caller
from observant_host.telemetry.vocabulary import AuthFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web
    from multidict import CIMultiDictProxy

    from observant_host.config import HostConfig
    from observant_host.service.access.tokens import Known
    from observant_host.telemetry.vocabulary import Fact
    from observant_host.timing.clock import Clock

    Tell = Callable[[Fact], object]

TOKEN_CHARS: Final = 8192
"""Of a token; those of some issuers list every group of a person."""
CLIENT_CHARS: Final = 64


class Access:
    """Who may do what on the listeners of one host. Without a token or an issuer configured,
    whoever reaches them is "local" and may do everything: they are then on loopback.

    Reads files at construction, so in a thread; raises ConfigError. `tell` is told of whoever is
    not let in.
    """

    def __init__(self, config: HostConfig, *, clock: Clock, tell: Tell) -> None:
        issuer, profiles = config.service.jwt, config.profiles
        self._tokens = Tokens(config.tokens, profiles, clock=clock)
        self.issued = None if issuer is None else JsonWebTokens(issuer, profiles, clock=clock)
        self._clock = clock
        self._tell = tell
        self.is_open: Final = not self._tokens and self.issued is None
        """Whether nobody needs a token."""

    def key_of(self, headers: CIMultiDictProxy[str]) -> bytes | None:
        """What stands for a request's token in `known`; None where there is not one plain token."""
        if self.is_open:
            return b""
        found = headers.getall("Authorization", [])
        secret = _bearer(found)
        if not secret or len(found) > 1 or len(secret) > TOKEN_CHARS:
            return None
        return digest_of(secret)

    def known(self, key: bytes, scope: str) -> Caller | None:
        """As `identify`, of whoever was found a moment ago; None for everybody else, also for those
        who are to be refused."""
        if self.is_open:
            return LOCAL
        found = self._tokens.lately(key)
        if found is None and self.issued is not None:
            found = self.issued.lately(key)
        if found is None or scope not in found.caller.scopes:
            return None
        if found.budget is not None and not found.budget.take(self._clock.monotonic()):
            return None
        return found.caller

    async def identify(self, request: web.Request, scope: str) -> Caller:
        """Who asks, where they may do what needs `scope`. Raises Refused."""
        if self.is_open:
            return LOCAL
        try:
            return await self._identified(request.headers.getall("Authorization", []), scope)
        except Refused as refused:
            if self.issued is not None:
                refused.metadata = self.issued.metadata_url(request)
            self.note(refused, request)
            raise

    async def sign_in(self, secret: str, scope: str) -> tuple[Caller, str]:
        """Who has this token, and a mark by which `resume` finds it again. Raises Refused."""
        try:
            found = await self._found(secret, scope)
        except Refused as refused:
            self._tell_of(refused, route="/", client="")
            raise
        return found.caller, found.mark

    async def resume(self, name: str, mark: str, scope: str) -> Caller:
        """As `sign_in`, by what it gave: the token may have been replaced since. Raises Refused."""
        found = await self._tokens.marked(mark)
        if found is None and self.issued is not None:
            found = self.issued.marked(mark)
        if found is None or found.caller.principal != name:
            raise Refused("invalid", scope=scope, detail="session")
        self._check(found, scope)
        return found.caller

    def note(self, refused: Refused, request: web.Request) -> None:
        """Count and log who was not let in."""
        self._tell_of(refused, route=group_of(request), client=(request.remote or ""))

    def _tell_of(self, refused: Refused, *, route: str, client: str) -> None:
        if refused.reason != "keys":
            self._tell(
                AuthFailed(
                    reason=refused.reason,
                    route=route,
                    scope=refused.scope,
                    principal=refused.principal,
                    client=client[:CLIENT_CHARS],
                    detail=refused.detail,
                )
            )

    async def _identified(self, headers: list[str], scope: str) -> Caller:
        secret = _bearer(headers)
        if secret is None:
            raise Refused("missing", scope=scope)
        if len(headers) > 1:
            raise Refused("invalid", scope=scope, detail="form")
        return (await self._found(secret, scope)).caller

    async def _found(self, secret: str, scope: str) -> Known:
        if not secret or len(secret) > TOKEN_CHARS:
            raise Refused("invalid", scope=scope, detail="form")
        found = await self._tokens.find(secret)
        if found is None:
            if self.issued is None:
                raise Refused("invalid", scope=scope, detail="unknown")
            found = await self.issued.read(secret, scope)
        self._check(found, scope)
        return found

    def _check(self, found: Known, scope: str) -> None:
        principal = found.caller.principal
        if scope not in found.caller.scopes:
            raise Refused("scope", scope=scope, principal=principal)
        if found.budget is not None and not found.budget.take(now := self._clock.monotonic()):
            wait = math.ceil(found.budget.wait_s(now))
            raise Refused("rate", scope=scope, principal=principal, after_s=max(1, wait))


def _bearer(headers: list[str]) -> str | None:
    """The token; None where there is none at all, "" where there is something else."""
    if not headers:
        return None
    kind, _, secret = headers[0].strip().partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""
