"""JSON-RPC envelopes: decoded outside, raw inside.

`decode` never raises: what is no message comes back as `NotAMessage`, what is broken as `Broken`
with whatever id could be read, so that one bad message fails one request.

Source: MCP 2026-07-28 basic/index › Messages; JSON-RPC 2.0.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

Id = int | str | float | bool | None
"""An id as it came. Compare with `same_id`: 1, 1.0, True and "1" are four different ids."""


class Request(msgspec.Struct, frozen=True, gc=False):
    id: int | str
    method: str
    params: Raw | None


class Notification(msgspec.Struct, frozen=True, gc=False):
    method: str
    params: Raw | None


class Result(msgspec.Struct, frozen=True, gc=False):
    id: Id
    result: Raw


class Error(msgspec.Struct, frozen=True, gc=False):
    """`code` is 0 and `message` "" where the peer sent no integer or no string.

    `id` is None for an explicit null and for an absent id.
    """

    id: Id
    code: int
    message: str
    data: Raw | None = None


class Broken(msgspec.Struct, frozen=True, gc=False):
    """A message of which only the id can be trusted: both result and error, undecodable inside, …

    `code` is the error's code where it is one of the recognised modern errors: evidence stays
    evidence even beside a result.
    """

    id: Id
    problem: str
    code: int | None = None


class NotAMessage(msgspec.Struct, frozen=True, gc=False):
    problem: str


Inbound = Request | Notification | Result | Error | Broken | NotAMessage
