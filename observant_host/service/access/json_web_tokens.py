"""Tokens that an issuer signed: who it is and what it may do, as far as the issuer says so.

Everything about signatures and times is the library's; here is only what is asked of it. A token is
for this host or for another (`aud`), never for both by accident, and it goes on to no server.

Source: RFC 7519, RFC 8725 3 (algorithms, audience), RFC 9068 2.2, RFC 9728 2 and 3; MCP 2026-07-28
basic/authorization › Token Audience Binding and Validation.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import jwt

from observant_host.decisions.slices import slice_of
from observant_host.service.access.refused import Refused
from observant_host.service.access.signing_keys import SigningKeys
from observant_host.service.access.tokens import Known, budget_of, digest_of, mark_of
from observant_host.service.callers import Caller

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from observant_host.config import JwtSettings, Profile
    from observant_host.decisions.budget import Budget
    from observant_host.timing.clock import Clock

LEEWAY_S: Final = 30
"""Two machines' clocks may differ by so much."""
BUDGETS: Final = 4096
"""Principals whose rate is remembered; the one who came longest ago begins anew."""
MARKS: Final = 1024
"""Tokens that sessions may go on with; who came longest ago signs in anew."""
LATELY_S: Final = 1.0
"""For a token that was verified: no longer than a configured one that was revoked is let in."""
PRINCIPAL_CHARS: Final = 128
SCOPES: Final = ("mcp", "read", "operate")
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
RESOURCE: Final = "/mcp"

WRONG: Final[tuple[tuple[type[Exception], str], ...]] = (
    (jwt.InvalidAudienceError, "audience"),
    (jwt.InvalidIssuerError, "issuer"),
    (jwt.InvalidAlgorithmError, "algorithm"),
    (jwt.ImmatureSignatureError, "not_before"),
    (jwt.MissingRequiredClaimError, "claims"),
    (jwt.InvalidSignatureError, "signature"),
    (jwt.InvalidIssuedAtError, "issued_at"),
    (jwt.DecodeError, "form"),
)
"""The library's errors and the word for the log, the most special first."""


class JsonWebTokens:
    """Those of the issuer that `[service.jwt]` names."""

    def __init__(
        self, settings: JwtSettings, profiles: Mapping[str, Profile] = {}, *, clock: Clock
    ) -> None:
        self._settings = settings
        self._slice = slice_of(profiles.get(settings.profile or ""))
        self._keys = SigningKeys(settings, clock=clock)
        self._clock = clock
        self._budgets: OrderedDict[str, Budget] = OrderedDict()
        self._signed_in: OrderedDict[str, tuple[Known, float]] = OrderedDict()
        self._lately: OrderedDict[bytes, tuple[Known, float]] = OrderedDict()

    def lately(self, digest: bytes) -> Known | None:
        """What `read` found for the token of this digest, for a second: its signature is not
        verified for each of many requests."""
        found, until_s = self._lately.get(digest, (None, 0.0))
        return found if found is not None and self._clock.wall_ns() / 1e9 < until_s else None

    async def read(self, token: str, scope: str) -> Known:
        """Whose token it is. Raises Refused."""
        try:
            claims = await self._claims(token, scope)
        except jwt.ExpiredSignatureError:
            raise Refused("expired", scope=scope) from None
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise Refused("invalid", scope=scope, detail=_word(error)) from None
        principal = _name(claims.get(self._settings.principal_claim))
        if principal is None:
            raise Refused("invalid", scope=scope, detail="principal")
        caller = Caller(principal=principal, scopes=self._scopes(claims), slice=self._slice)
        digest, until_s = digest_of(token), float(claims["exp"])
        found = Known(caller, self._budget(principal), mark_of(digest))
        self._remember(found, until_s=until_s)
        self._lately[digest] = (found, min(self._clock.wall_ns() / 1e9 + LATELY_S, until_s))
        self._lately.move_to_end(digest)
        if len(self._lately) > MARKS:
            self._lately.popitem(last=False)
        return found

    def marked(self, mark: str) -> Known | None:
        """The token of that mark, until it expires."""
        found, until_s = self._signed_in.get(mark, (None, 0.0))
        return found if self._clock.wall_ns() / 1e9 < until_s else None

    def _remember(self, found: Known, *, until_s: float) -> None:
        self._signed_in[found.mark] = (found, until_s)
        self._signed_in.move_to_end(found.mark)
        if len(self._signed_in) > MARKS:
            self._signed_in.popitem(last=False)

    async def _claims(self, token: str, scope: str) -> dict[str, Any]:
        settings = self._settings
        head = jwt.get_unverified_header(token)
        algorithm = head.get("alg")
        if algorithm not in settings.algorithms:
            raise jwt.InvalidAlgorithmError
        key_id = head.get("kid")
        key = await self._keys.find(key_id if isinstance(key_id, str) else None)
        if key is None:
            raise Refused("invalid", scope=scope, detail="key")
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=list(settings.audience),
            issuer=settings.issuer,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims

    def _scopes(self, claims: Mapping[str, Any]) -> frozenset[str]:
        said = claims.get(self._settings.scope_claim)
        words = said.split() if isinstance(said, str) else said if isinstance(said, list) else []
        if not self._settings.scope_map:
            return frozenset(SCOPES).intersection(word for word in words if isinstance(word, str))
        mapped = (self._settings.scope_map.get(str(word), ()) for word in words)
        return frozenset(scope for scopes in mapped for scope in scopes)

    def _budget(self, principal: str) -> Budget | None:
        if self._settings.rate is None:
            return None
        found = self._budgets.get(principal) or budget_of(self._settings.rate)
        if found is not None:
            self._budgets[principal] = found
            self._budgets.move_to_end(principal)
        if len(self._budgets) > BUDGETS:
            self._budgets.popitem(last=False)
        return found

    def resource(self, request: web.Request) -> str:
        """The URL that clients know the MCP endpoint by."""
        return self._settings.resource or f"{request.scheme}://{request.host}{RESOURCE}"

    def metadata_url(self, request: web.Request) -> str:
        """Where the document below is: the resource's own path comes after the well-known one."""
        parts = urlsplit(self.resource(request))
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"

    def metadata(self, request: web.Request) -> dict[str, Any]:
        """The protected resource metadata document: where a client gets a token for this host."""
        offered = {
            word
            for word, scopes in self._settings.scope_map.items()
            if set(scopes).intersection(SCOPES)
        }
        return {
            "resource": self.resource(request),
            "authorization_servers": [self._settings.issuer],
            "scopes_supported": sorted(offered) or list(SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": "observant-host",
        }


def _word(error: Exception) -> str:
    return next((word for kind, word in WRONG if isinstance(error, kind)), "form")


def _name(claim: object) -> str | None:
    if not isinstance(claim, str):
        return None
    return "".join(char for char in claim if char.isprintable())[:PRINCIPAL_CHARS].strip() or None
