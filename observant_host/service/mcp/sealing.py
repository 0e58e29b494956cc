"""What a caller carries for us between two rounds of input: readable and changeable by nobody else.

It comes back from outside, so it is authenticated encryption (AES-256-GCM with a nonce of its own
for each, which is safe for 2^32 of them with one key), and it names all that it is good for: the
server, the method, the parameters, the caller, and until when. Replicas with one key file serve
each other's; a key is exchanged by adding the new one as second, then as first, then dropping the
old one.

Source: MCP 2026-07-28 basic/patterns/mrtr › Security Considerations; NIST SP 800-38D.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec import Raw

PREFIX: Final = "oh1."
"""The format's version; it is authenticated with the rest."""
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
MAX_KEYS: Final = 2
"""The one that seals and the one before it."""
MAX_STATE: Final = 256 * 1024
"""Characters of a server's own state, which travels twice in each round: more is a document."""
MAX_SEALED: Final = 2 * MAX_STATE
"""Characters that are looked at: no longer text is ours."""
LIFETIME_S: Final = 3600
"""For a person to answer in. A server's own state may end earlier."""

OWN: Final = frozenset({"inputResponses", "requestState", "_meta"})
"""Parameters that differ from round to round."""


class Round(msgspec.Struct, frozen=True, array_like=True):
    """A call between two rounds. `state` is the server's own, None where it gave none. `parked`
    names an open call of the run `instance`, None where the server keeps nothing open.

    `number` is that of the round to come, `expires` in seconds since 1970, `trace` the traceparent
    of the call's first round.
    """

    principal: str
    server: str
    method: str
    digest: bytes
    number: int
    expires: int
    state: str | None = None
    parked: str | None = None
    instance: str | None = None
    trace: str | None = None


class Sealer:
    """The first of `keys` seals, each opens. Raises ValueError for keys of another size."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not 1 <= len(keys) <= MAX_KEYS or any(len(key) != KEY_BYTES for key in keys):
            raise ValueError(f"one or {MAX_KEYS} keys of {KEY_BYTES} bytes are needed")
        self._ciphers = [AESGCM(key) for key in keys]

    def seal(self, content: Round) -> str:
        """As text of letters, digits, `-`, `_` and `.` alone."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._ciphers[0].encrypt(nonce, _encode(content), PREFIX.encode())
        return PREFIX + _to_text(nonce + sealed)

    def open(self, text: str) -> Round | None:
        """None for everything that was not sealed with one of the keys, to the last bit."""
        sealed = _from_text(text)
        if sealed is None:
            return None
        nonce, rest = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        for cipher in self._ciphers:
            try:
                return _decode(cipher.decrypt(nonce, rest, PREFIX.encode()))
            except (InvalidTag, ValueError, msgspec.MsgspecError):
                continue
        return None


def flaw(
    content: Round, *, principal: str, method: str, server: str, digest: bytes, now: float
) -> str | None:
    """Why this is not good for this request, or None. A caller learns no more than it must."""
    if content.principal != principal:
        return "it was given to somebody else"
    if content.method != method or content.digest != digest:
        return "it belongs to another request: a retry repeats the method and all parameters"
    if content.server != server:
        return "what was called has another server by now"
    if content.expires <= now:
        return "it has expired: begin the call anew"
    return None


def digest_of(params: Mapping[str, Raw]) -> bytes:
    """Of what a retry must repeat, however it is written. Raises ValueError, RecursionError where a
    value cannot be decoded."""
    same: dict[str, Any] = {key: decode_value(one) for key, one in params.items() if key not in OWN}
    return hashlib.sha256(_canonical(same)).digest()


def read_keys(text: str) -> tuple[bytes, ...]:
    """The keys of a key file: one or two lines of base64. Raises ValueError, quoting nothing."""
    lines = [line.strip() for line in text.splitlines()]
    written = [line for line in lines if line and not line.startswith("#")]
    if not 1 <= len(written) <= MAX_KEYS:
        raise ValueError(f"it has {len(written)} keys, not one or two, each on a line")
    return tuple(_key(line) for line in written)


def random_keys() -> tuple[bytes, ...]:
    """For one run alone."""
    return (secrets.token_bytes(KEY_BYTES),)


def _key(line: str) -> bytes:
    try:
        key = base64.b64decode(line.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError(
            f"a key must be {KEY_BYTES} random bytes as base64 (make one: openssl rand -base64 32)"
        )
    return key


def _to_text(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def _from_text(text: str) -> bytes | None:
    """Only exactly as `_to_text` writes it: base64 leaves bits that mean nothing."""
    body = text.removeprefix(PREFIX)
    if len(text) > MAX_SEALED or len(body) == len(text) or not body.isascii():
        return None
    try:
        sealed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return None
    return sealed if _to_text(sealed) == body and len(sealed) > NONCE_BYTES else None


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Round).decode
_canonical: Final = msgspec.json.Encoder(order="sorted").encode
