"""A browser's session: a signed cookie that says whose token opened it, and until when.

Nothing is kept of one that is open. The key is of this run of the host, so that its end ends every
session; the token itself is never in the cookie, and is looked up by its name at each request, so
that one that was taken away or changed lets nobody in.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

COOKIE: Final = "observant_host_console"
LASTS_S: Final = 8 * 3600
"""A working day."""
MAX_COOKIE: Final = 1024
MAX_OVER: Final = 10_000
"""Sessions that were ended before their time: more sign-outs in a working day than people."""


class Session(msgspec.Struct, frozen=True, array_like=True):
    """`token` is the name of the token that opened it, "" where none is configured; `mark` is of
    the token as it was then; `ends` is epoch seconds."""

    id: str
    token: str
    mark: str
    ends: int


class Sessions:
    """Makes and reads cookies, and the word that each form of a session carries."""

    def __init__(self, now_s: Callable[[], float], *, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)
        self._now_s = now_s

        self._over: dict[str, int] = {}

    def begin(self, token: str = "", *, mark: str = "") -> Session:
        return Session(secrets.token_urlsafe(16), token, mark, int(self._now_s()) + LASTS_S)

    def cookie(self, session: Session) -> str:
        body = base64.urlsafe_b64encode(msgspec.json.encode(session)).decode()
        return f"{body}.{self._signed('cookie', body)}"

    def read(self, cookie: str | None) -> Session | None:
        """None where it was not made here, was changed, or is over."""
        if cookie is None or len(cookie) > MAX_COOKIE or not cookie.isascii():
            return None
        body, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature, self._signed("cookie", body)):
            return None
        session = msgspec.json.decode(base64.urlsafe_b64decode(body), type=Session)
        over = session.id in self._over or session.ends <= self._now_s()
        return None if over else session

    def end(self, session: Session) -> None:
        """Let nobody in by it any more, whoever else may have its cookie."""
        now_s = self._now_s()
        self._over = {one: ends for one, ends in self._over.items() if ends > now_s}
        if len(self._over) < MAX_OVER:
            self._over[session.id] = session.ends

    def word(self, session: Session) -> str:
        """What a form of this session must carry. Source: OWASP, Cross-Site Request Forgery
        Prevention, HMAC based token pattern."""
        return self._signed("form", session.id)

    def fits(self, session: Session, word: str) -> bool:
        return hmac.compare_digest(word.encode("utf-8", "replace"), self.word(session).encode())

    def _signed(self, purpose: str, text: str) -> str:
        message = f"{purpose}\0{text}".encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()


def from_here(*, site: str | None, origin: str | None, host: str | None) -> bool:
    """Whether a form was sent by a page of ours: by Sec-Fetch-Site, where the browser is too old
    for it by Origin against Host. With neither: no.

    The scheme is not compared: a proxy in front may speak TLS. Source: W3C Fetch Metadata.
    """
    if site is not None:
        return site == "same-origin"
    if not origin or not host:
        return False
    return origin.partition("://")[2].lower() == host.lower()
