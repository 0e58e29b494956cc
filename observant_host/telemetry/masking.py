"""Secrets out of everything that leaves: one masker, made once from the configured values.

It knows each secret as it is, and as JSON, URLs and base64 would write it, because a peer that
echoes a header or its environment rarely echoes it plainly.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK: Final = "***"
MIN_LENGTH: Final = 4
"""Shorter values ("1", "dev", "on") would black out ordinary text and protect nothing."""
MAX_SECRETS: Final = 4096
"""Values known at once: far above any configuration, so that a pattern stays in memory."""


class Masker:
    """Replaces every configured secret by `***`, the longest first.

    `version` grows when it learns more: whoever caches masked text forgets it then.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.version = 0
        self._known: set[str] = set()
        self._lent: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._text: re.Pattern[str] | None = None
        self._bytes: re.Pattern[bytes] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these too from now on (a server was added while the host runs)."""
        more = {s for s in secrets if len(s) >= MIN_LENGTH} - self._known
        if not more:
            return
        self._known |= more
        self._compile()

    def lend(self, owner: str, secrets: Iterable[str]) -> None:
        """These are the present ones of `owner`, who changes them again and again.

        They and the ones before are masked: what is older has expired, and would pile up.
        """
        present = frozenset(s for s in secrets if len(s) >= MIN_LENGTH)
        last, _ = self._lent.get(owner, (frozenset(), frozenset()))
        if present != last:
            self._lent[owner] = (present, last)
            self._compile()

    def _compile(self) -> None:
        self.version += 1
        lent = (secret for pair in self._lent.values() for each in pair for secret in each)
        known = sorted(self._known.union(lent), key=len, reverse=True)
        if not known:
            self._text = self._bytes = None
            return
        forms = sorted(
            {form for secret in known[:MAX_SECRETS] for form in _forms(secret)},
            key=len,
            reverse=True,
        )
        self._text = re.compile("|".join(map(re.escape, forms)))
        self._bytes = re.compile(
            b"|".join(re.escape(f.encode("utf-8", "surrogateescape")) for f in forms)
        )

    def text(self, value: str) -> str:
        return value if self._text is None else self._text.sub(MASK, value)

    def bytes(self, value: bytes) -> bytes:
        return value if self._bytes is None else self._bytes.sub(MASK.encode(), value)


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield from _base64_forms(secret.encode("utf-8", "surrogateescape"))


def _base64_forms(raw: bytes) -> Iterator[str]:
    """The part of base64 text that does not depend on what stands before and after the secret."""
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        start = (0, 2, 3)[shift]
        stable = encoded.rstrip("=")[start:]
        if (len(raw) + shift) % 3:
            stable = stable[:-1]
        if len(stable) >= 2 * MIN_LENGTH:
            yield stable
            yield stable.translate(_URLSAFE)


_URLSAFE: Final = str.maketrans("+/", "-_")


class Cleaner:
    """Text on its way out: masked, cut to a bound, without control characters; cached.

    Always in this order: text that is cut first may keep half a secret at its end.
    """

    def __init__(self, masker: Masker, *, limit: int = 1024) -> None:
        self.masker = masker
        self._limit = limit
        self._cache: dict[str, str] = {}
        self._version = masker.version

    @property
    def version(self) -> int:
        """The masker's: texts cleaned under an earlier one may show what is a secret now."""
        return self.masker.version

    def text(self, value: str, *, limit: int | None = None) -> str:
        """At most `limit` characters (default: what was given at construction)."""
        if limit is not None or len(value) > self._limit:
            return self._clean(value, limit or self._limit)
        if self._version != self.masker.version:
            self._version = self.masker.version
            self._cache.clear()
        if (known := self._cache.get(value)) is None:
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            known = self._cache[value] = self._clean(value, self._limit)
        return known

    def _clean(self, value: str, limit: int) -> str:
        return self.masker.text(value)[:limit].translate(_CONTROL)


MAX_CACHED: Final = 4096
"""Cached texts, of at most 1,024 characters each: 4 MiB at worst."""

_CONTROL: Final = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127))
"""Control characters other than tab, newline and return: they can rewrite a terminal."""
