"""A request that is not let in, and what it is told.

Source: RFC 6750 3 (the challenge and its errors); RFC 9728 5.1 (`resource_metadata`); MCP
2026-07-28 basic/authorization › Error Handling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Reason = Literal["missing", "invalid", "expired", "scope", "rate", "origin", "host", "keys"]

STATUS: Final[Mapping[Reason, int]] = {
    "missing": 401,
    "invalid": 401,
    "expired": 401,
    "scope": 403,
    "rate": 429,
    "origin": 403,
    "host": 403,
    "keys": 503,
}
SENTENCES: Final[Mapping[Reason, str]] = {
    "missing": "this needs a token: Authorization: Bearer …, with the scope {scope}",
    "invalid": "the token is not valid here",
    "expired": "the token has expired",
    "scope": "the token has not the scope {scope}",
    "rate": "the token is used too often; try again in {after_s} s",
    "origin": "pages of this origin may not ask here; see [service] allowed_origins",
    "host": "this is not the host that was asked for; see [service] allowed_hosts",
    "keys": "the keys that tokens are signed with cannot be read now; try again in {after_s} s",
}
CHALLENGED: Final[Mapping[Reason, str]] = {
    "missing": "",
    "invalid": "invalid_token",
    "expired": "invalid_token",
    "scope": "insufficient_scope",
}
"""Reasons that are told in WWW-Authenticate, with the error that it names."""
REALM: Final = "observant-host"


class Refused(Exception):
    """Never leaves the service. `reason` as in telemetry ("keys" is the issuer's failure alone),
    `detail` for the log: what exactly was wrong helps a thief more than a client."""

    def __init__(
        self,
        reason: Reason,
        *,
        scope: str = "",
        principal: str = "",
        detail: str = "",
        after_s: int = 1,
    ) -> None:
        self.reason: Reason = reason
        self.status = STATUS[reason]
        self.scope = scope
        self.principal = principal
        self.detail = detail
        self._after_s = after_s
        self.metadata: str | None = None
        super().__init__(SENTENCES[reason].format(scope=scope, after_s=after_s))

    @property
    def headers(self) -> dict[str, str]:
        found = {}
        if self.reason in CHALLENGED:
            found["WWW-Authenticate"] = self._challenge(CHALLENGED[self.reason])
        if self.status in (429, 503):
            found["Retry-After"] = str(self._after_s)
        return found

    @property
    def body(self) -> bytes:
        return problem("refused", str(self), reason=self.reason)

    def _challenge(self, error: str) -> str:
        parts = {"realm": REALM, "error": error, "scope": self.scope}
        if error:
            parts["error_description"] = str(self)
        if self.metadata is not None:
            parts["resource_metadata"] = self.metadata
        return "Bearer " + ", ".join(f'{key}="{value}"' for key, value in parts.items() if value)


def problem(kind: str, message: str, **more: str) -> bytes:
    """The JSON that every error of the service has."""
    return msgspec.json.encode({"error": {"type": kind, "message": message, **more}})
