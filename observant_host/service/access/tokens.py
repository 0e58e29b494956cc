"""The tokens of `[tokens.NAME]`: known by their digests only, compared in constant time.

A token that lies in a file is read again while the host runs: what was replaced there stops being
let in, and what replaced it is let in, without a restart.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.budget import Budget, Rate
from observant_host.decisions.slices import slice_of
from observant_host.errors import ConfigError
from observant_host.service.callers import Caller

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import Profile, Token
    from observant_host.timing.clock import Clock

REREAD_S: Final = 1.0
"""A file that holds a token is looked at so often while requests come; a revoked token is let in no
longer than that."""
SOON_S: Final = 0.1
"""So often where a token is not known: it may have been written a moment ago."""
FILE_BYTES: Final = 64 * 1024
"""Of a file with tokens; a few hundred of them."""


class Known(msgspec.Struct, frozen=True):
    """Whose token it is, and how often it may be used (None: as often as it likes). `mark` stands
    for the token where it must not be kept; it means nothing to another process."""

    caller: Caller
    budget: Budget | None
    mark: str = ""


class Tokens:
    """All configured tokens. Reads files and variables at construction, so in a thread; raises
    ConfigError where one cannot be read."""

    def __init__(
        self,
        tokens: Mapping[str, Token],
        profiles: Mapping[str, Profile] = {},
        *,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._known = {name: _known(name, token, profiles) for name, token in tokens.items()}
        self._digests = {name: _first_digests(name, token) for name, token in tokens.items()}
        self._files = {name: token.file for name, token in tokens.items() if token.file is not None}
        self._read_s = clock.monotonic()
        self._reading = asyncio.Lock()
        self._lately: dict[bytes, Known] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def lately(self, digest: bytes) -> Known | None:
        """What `find` found for a token of this digest, until files are to be read again. Nobody
        can choose a digest, so that a look into a table tells nothing of how near a guess came."""
        if self._files and self._clock.monotonic() - self._read_s >= REREAD_S:
            return None
        return self._lately.get(digest)

    async def find(self, secret: str) -> Known | None:
        """Whose token this is. No answer depends on how much of a token was guessed."""
        given = digest_of(secret)
        await self._read_again(older_than_s=REREAD_S)
        found = self._match(given)
        if found is None and await self._read_again(older_than_s=SOON_S):
            found = self._match(given)
        if found is None:
            return None
        known = msgspec.structs.replace(self._known[found], mark=mark_of(given))
        self._lately[given] = known  # no more than there are tokens
        return known

    async def marked(self, mark: str) -> Known | None:
        """The token of that mark, while it is one."""
        await self._read_again(older_than_s=REREAD_S)
        for name, digests in self._digests.items():
            for digest in digests:
                if hmac.compare_digest(mark_of(digest).encode(), mark.encode()):
                    return msgspec.structs.replace(self._known[name], mark=mark)
        return None

    def _match(self, given: bytes) -> str | None:
        found = None
        for name, digests in self._digests.items():
            for digest in digests:
                if hmac.compare_digest(digest, given):
                    found = name
        return found

    async def _read_again(self, *, older_than_s: float) -> bool:
        if not self._files or self._clock.monotonic() - self._read_s < older_than_s:
            return False
        async with self._reading:
            if self._clock.monotonic() - self._read_s >= older_than_s:
                self._digests |= await asyncio.to_thread(_read_files, self._files)
                self._lately.clear()
                self._read_s = self._clock.monotonic()
        return True


def budget_of(rate: float | None) -> Budget | None:
    """`rate` requests a second over time, twice as many at once."""
    return None if rate is None else Budget(Rate(burst=max(1, round(2 * rate)), every_s=1 / rate))


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def mark_of(digest: bytes) -> str:
    return hashlib.sha256(_OURS + digest).hexdigest()


_OURS: Final = secrets.token_bytes(32)


def _known(name: str, token: Token, profiles: Mapping[str, Profile]) -> Known:
    part = slice_of(profiles.get(token.profile) if token.profile is not None else None)
    caller = Caller(principal=name, scopes=frozenset(token.scopes), slice=part)
    return Known(caller, budget_of(token.rate))


def _first_digests(name: str, token: Token) -> tuple[bytes, ...]:
    try:
        match token:
            case _ if token.sha256 is not None:
                return (bytes.fromhex(token.sha256.removeprefix("sha256:")),)
            case _ if token.file is not None:
                found = _digests_in(token.file)
            case _:
                secret = os.environ[token.env or ""].strip()
                found = (digest_of(secret),) if secret else ()
    except (OSError, KeyError, ValueError) as error:
        raise ConfigError([_unreadable(name, token, error)]) from None
    if not found:
        key = "file" if token.file is not None else "env"
        raise ConfigError([f"tokens.{name}.{key}: it holds no token; an empty one opens nothing"])
    return found


def _read_files(files: Mapping[str, str]) -> dict[str, tuple[bytes, ...]]:
    """What cannot be read now opens nothing until it can."""
    return {name: _quietly(file) for name, file in files.items()}


def _quietly(file: str) -> tuple[bytes, ...]:
    try:
        return _digests_in(file)
    except (OSError, ValueError):
        return ()


def _digests_in(file: str) -> tuple[bytes, ...]:
    """A token a line: two while one replaces the other."""
    with Path(file).open(encoding="utf-8") as stream:
        lines = stream.read(FILE_BYTES).splitlines()
    return tuple(digest_of(line.strip()) for line in lines if line.strip())


def _unreadable(name: str, token: Token, error: Exception) -> str:
    """Says nothing of the value: where a path or a variable belongs, a token may have been put."""
    if token.sha256 is not None:
        return f"tokens.{name}.sha256: it is no SHA-256 digest; write 64 hexadecimal digits"
    key = "file" if token.file is not None else "env"
    why = error.strerror if isinstance(error, OSError) else type(error).__name__
    what = "a readable file" if key == "file" else "a variable that is set"
    return f"tokens.{name}.{key}: its secret cannot be read ({why}); it must name {what}"
