"""The public keys that an issuer signs its tokens with: fetched, kept, fetched again when they
rotate.

A token with an unknown key has them fetched at once, but not more often than the cooldown: whoever
makes up key names must not make us call the issuer. Keys that cannot be fetched for a while go on
serving.

Source: RFC 7517 4 and 5.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import jwt
import msgspec

from observant_host.service.access.refused import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from observant_host.config import JwtSettings
    from observant_host.timing.clock import Clock

FRESH_S: Final = 300.0
"""Keys are fetched again when a token comes after so long."""
COOLDOWN_S: Final = 10.0
"""Between two fetches, whatever tokens come."""
STALE_S: Final = 3600.0
"""Keys serve so long without having been fetched again: an issuer that is down takes nobody's
access before."""
FETCH_S: Final = 5.0
DOCUMENT_BYTES: Final = 256 * 1024
KEYS: Final = 100
"""Of one issuer, who has a few."""
KINDS: Final = frozenset({"RSA", "EC", "OKP"})
"""Key types with a public half. A symmetric key in a public document is everybody's."""


class SigningKeys:
    """Keys of one issuer, by key id."""

    def __init__(self, settings: JwtSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_s: float | None = None
        self._tried_s: float | None = None
        self._fetching = asyncio.Lock()

    async def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key of that id; without an id the only one. Raises Refused ("keys")."""
        await self._refresh(older_than_s=FRESH_S)
        found = self._find(key_id)
        if found is None:
            await self._refresh(older_than_s=0.0)
            found = self._find(key_id)
        if self._age_s() > STALE_S:
            raise Refused("keys", after_s=int(COOLDOWN_S))
        return found

    def _find(self, key_id: str | None) -> jwt.PyJWK | None:
        if key_id is not None:
            return self._keys.get(key_id)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    def _age_s(self) -> float:
        return float("inf") if self._read_s is None else self._clock.monotonic() - self._read_s

    async def _refresh(self, *, older_than_s: float) -> None:
        if self._age_s() < older_than_s or self._is_cooling():
            return
        async with self._fetching:
            if self._age_s() < older_than_s or self._is_cooling():
                return
            self._tried_s = self._clock.monotonic()
            try:
                keys = keys_in(await self._fetch())
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
                return
            self._keys = keys
            self._read_s = self._clock.monotonic()

    def _is_cooling(self) -> bool:
        return self._tried_s is not None and self._clock.monotonic() - self._tried_s < COOLDOWN_S

    async def _fetch(self) -> bytes:
        url = self._settings.jwks_url
        if url is None:
            return await asyncio.to_thread(_read, self._settings.jwks_file or "")
        limit = aiohttp.ClientTimeout(total=FETCH_S)
        async with (
            aiohttp.ClientSession(timeout=limit, trust_env=True) as session,
            session.get(url, allow_redirects=False, raise_for_status=True) as answer,
        ):
            if answer.status != 200:
                raise ValueError("no document")
            return await _bounded(answer.content)


async def _bounded(content: aiohttp.StreamReader) -> bytes:
    body = b""
    async for chunk in content.iter_chunked(8192):
        body += chunk
        if len(body) > DOCUMENT_BYTES:
            raise ValueError("the document is too large")
    return body


def _read(file: str) -> bytes:
    with Path(file).open("rb") as stream:
        body = stream.read(DOCUMENT_BYTES + 1)
    if len(body) > DOCUMENT_BYTES:
        raise ValueError("the document is too large")
    return body


def keys_in(document: bytes) -> dict[str, jwt.PyJWK]:
    """The keys for signatures in a key set. Raises ValueError where it is none; keys that this
    host cannot use are left out, as the RFC asks."""
    try:
        members = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
        entries = msgspec.json.decode(members["keys"], type=list[dict[str, Any]])
    except (msgspec.MsgspecError, KeyError, RecursionError) as error:
        raise ValueError("no key set") from error
    return dict(_usable(entries[:KEYS]))


def _usable(entries: Iterable[dict[str, Any]]) -> Iterable[tuple[str, jwt.PyJWK]]:
    for entry in entries:
        if entry.get("kty") not in KINDS or entry.get("use", "sig") != "sig":
            continue
        try:
            yield str(entry.get("kid", "")), jwt.PyJWK.from_dict(entry)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue
