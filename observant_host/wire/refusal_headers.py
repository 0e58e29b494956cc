"""What the headers of a refusal ask for, in words: a login of some kind, a scope, a pause.

A server's free text has no place in a sentence for a person. These values have a grammar, so what
does not fit it is left out.

Source: RFC 6750 3 The WWW-Authenticate Response Header Field; RFC 9728 5.1; RFC 9110 10.2.3; MCP
2026-07-28 basic/authorization.
"""

from __future__ import annotations

import re
from typing import Final

REFUSED_LOGIN: Final = frozenset({401, 403})
ASKS_FOR_PAUSE: Final = frozenset({429, 503})

MAX_SCOPE: Final = 200
MAX_ADDRESS: Final = 300

_PARAMETER: Final = r'(?:^|[\s,]){}\s*=\s*(?:"([^"\\]*)"|([^\s,"]+))'
_CODE: Final = re.compile(r"[a-z_]{1,40}")
_SCOPE: Final = re.compile(r"[!#-\[\]-~]+( [!#-\[\]-~]+)*")
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._~%!$&'()*+,;=:@/-]*)?")


def asks_for(status: int, *, challenge: str | None, retry_after_s: float | None) -> str:
    """A clause without a full stop, "" where the headers say nothing to go on with.

    `challenge` is the value of WWW-Authenticate.
    """
    if status in REFUSED_LOGIN:
        return ", ".join(_of_challenge(challenge or ""))
    if status in ASKS_FOR_PAUSE and retry_after_s is not None:
        return f"it asks for a pause of {retry_after_s:.0f} s"
    return ""


def _of_challenge(challenge: str) -> list[str]:
    told = []
    error, scope = _value(challenge, "error"), _value(challenge, "scope")
    address = _value(challenge, "resource_metadata")
    if _CODE.fullmatch(error):
        told.append(f"it says {error}")
    if len(scope) <= MAX_SCOPE and _SCOPE.fullmatch(scope):
        told.append(f"it asks for the scope {scope}")
    if len(address) <= MAX_ADDRESS and _ADDRESS.fullmatch(address):
        told.append(f"{address} says who gives tokens for it")
    return told


def _value(challenge: str, name: str) -> str:
    """Of the first parameter of this name; "" where there is none."""
    found = re.search(_PARAMETER.format(name), challenge, re.IGNORECASE)
    return (found[1] if found[1] is not None else found[2]) if found else ""
