"""Frames for tests: one decoded message, a reply around its result, and what no decoder follows."""

from __future__ import annotations

from typing import Any

import msgspec

from observant_host.wire.jsonrpc import Inbound, decode

DEEP = b"[" * 100_000 + b"]" * 100_000
"""Nested more deeply than any decoder follows."""


def one(frame: bytes | str, **options: bool) -> Inbound:
    (message,) = decode(frame.encode() if isinstance(frame, str) else frame, **options)
    return message


def reply(inside: bytes, request_id: bytes = b"7") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, inside)


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
