"""What went wrong with an exchange, in words for a person, with what is certain of its delivery.

Everything that a server or a library said is masked here before it becomes part of a text; only
`HttpFailure.body` stays as it came, because evidence is judged on it.
"""

from __future__ import annotations

import re
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import aiohttp

from observant_host.errors import HttpFailure
from observant_host.transports.web.retry_after import retry_after_s
from observant_host.wire.refusal_headers import asks_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yarl import URL

    from observant_host.errors import HttpFailureKind
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.web.connections import Passage

BODY_BYTES: Final = 64 * 1024
"""Of a refused answer kept: a JSON-RPC error fits, an error page need not."""

SHOWN_CHARS: Final = 200
"""Of a body in one sentence."""

READ_BYTES: Final = 16 * 1024
"""Of a body looked at for that: the title of a page stands near its beginning."""


class Failures:
    """Makes the failures of one server's exchanges."""

    def __init__(self, *, masker: Masker, clock: Clock) -> None:
        self._masker = masker
        self._clock = clock

    def make(
        self,
        kind: HttpFailureKind,
        url: URL,
        what: str,
        *,
        sent: bool = True,
        status: int | None = None,
        content_type: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> HttpFailure:
        """`what` continues a sentence that begins with the URL."""
        given = headers or {}
        where = self._masker.text(shown(url))  # a path may hold a key
        pause_s = retry_after_s(given.get("Retry-After"), wall_ns=self._clock.wall_ns())
        challenge = self._masker.text(readable(given.get("WWW-Authenticate")) or "")
        asked = asks_for(status or 0, challenge=challenge, retry_after_s=pause_s)
        return HttpFailure(
            f"{where} {self._masker.text(what)}" + (f"; {asked}" if asked else ""),
            kind=kind,
            url=where,
            sent=sent,
            status=status,
            content_type=content_type,
            body=body[:BODY_BYTES],
            retry_after_s=pause_s,
            www_authenticate=challenge or None,
        )

    def of_error(
        self,
        error: Exception,
        url: URL,
        passage: Passage,
        *,
        status: int | None = None,
        content_type: str = "",
    ) -> HttpFailure:
        """From what the HTTP library raised while asking, or reading an answer of this status."""
        kind = kind_of(error)
        if passage.connected and kind in ("refused", "timeout", "dns", "tls"):
            kind = "reset"
        return self.make(
            kind,
            url,
            f"{_WORDS[kind]}{self._detail(error, kind)}",
            sent=passage.connected,
            status=status,
            content_type=content_type,
        )

    def excerpt(self, body: bytes, content_type: str) -> str:
        """A short masked text of a body: of a page its title only."""
        text = body[:READ_BYTES].decode("utf-8", "replace")
        if "html" in content_type or text.lstrip()[:1] == "<":
            text = page_title(text)
        return " ".join(self._masker.text(text).split())[:SHOWN_CHARS]

    def refusal(self, status: int, content_type: str, body: bytes) -> str:
        """`answered 502 Bad Gateway (text/html): Bad gateway`."""
        said = self.excerpt(body, content_type)
        of_type = f" ({content_type})" if content_type else ""
        return f"answered {status}{_phrase(status)}{of_type}" + (f": {said}" if said else "")

    def _detail(self, error: Exception, kind: HttpFailureKind) -> str:
        if kind == "timeout" or isinstance(error, aiohttp.ClientPayloadError):
            return ""
        cause = getattr(error, "os_error", None) or error
        said = " ".join(self._masker.text(str(cause)).split())[:SHOWN_CHARS]
        return f": {said}" if said else ""


_WORDS: Final[Mapping[HttpFailureKind, str]] = {
    "refused": "cannot be reached",
    "reset": "was connected, but the connection broke before the answer was whole",
    "dns": "cannot be reached, its host name is not known",
    "tls": "cannot be trusted: the TLS handshake failed",
    "timeout": "cannot be reached, no connection within connect_timeout_s",
    "content": "does not speak HTTP as it should",
}


def kind_of(error: BaseException) -> HttpFailureKind:
    """Which kind of failure an exception of the HTTP library is."""
    match error:
        case TimeoutError():
            return "timeout"
        case aiohttp.ClientConnectorDNSError():
            return "dns"
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return "tls"
        case aiohttp.ClientConnectorError() | aiohttp.ClientHttpProxyError():
            return "refused"
        case aiohttp.ClientResponseError() | aiohttp.InvalidURL():
            return "content"
        case _:
            return "reset"


def shown(url: URL) -> str:
    """Without what may be secret: user, query, fragment."""
    return str(url.with_user(None).with_query(None).with_fragment(None))


MAX_HEADER_CHARS: Final = 4096
"""Of a header's value kept: a challenge names a scope and an address."""


def readable(value: str | None) -> str | None:
    """A header's value as text that can be written anywhere: bytes that are none replaced."""
    if value is None:
        return None
    return value[:MAX_HEADER_CHARS].encode("utf-8", "replace").decode()


def page_title(html: str) -> str:
    """What an HTML page says, in one line: its title, else its text without marks."""
    title = re.search(r"<title[^<>]{0,200}>([^<]{1,400})<", html, re.IGNORECASE)
    if title and title[1].strip():
        return title[1]
    return re.sub(r"<[^<>]{0,1000}>", " ", html)


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""
