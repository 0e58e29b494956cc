"""What an HTTP exchange proves about a server's era.

A body that only a modern server writes proves it at any status that the server itself gave; 401,
403 and 5xx may be anybody's. What is left of the answers is as ambiguous as an error on a pipe, and
what is no answer is no evidence.

Source: MCP 2026-07-28 basic/transports/streamable-http › Backward Compatibility, Protocol Version
Header; basic/versioning › Backward Compatibility.
"""

from __future__ import annotations

from typing import Final

import msgspec

from observant_host.decisions.evidence import (
    Evidence,
    EvidenceStep,
    Seen,
    Silence,
    judge_discover,
    judge_initialize,
)
from observant_host.decisions.evidence_kinds import EvidenceKind
from observant_host.decisions.http_exchange import Exchange, Reply
from observant_host.errors import HttpFailure
from observant_host.wire.jsonrpc import Broken, Error, Result, decode
from observant_host.wire.refusal_headers import asks_for
from observant_host.wire.revisions import MODERN


class HttpReply(msgspec.Struct, frozen=True, kw_only=True):
    """The message that came back on the POST: as its body, or as an event of its stream.

    `paired` is False where its id only resembled ours.
    """

    message: Reply
    status: int = 200
    content_type: str = ""
    paired: bool = True


HttpAnswer = HttpReply | HttpFailure | Silence


def judge_http_discover(
    answer: HttpAnswer, *, seen: Seen, modern: tuple[str, ...] = MODERN
) -> Evidence:
    """Judge what came of a POST of `server/discover`; `modern` as in `judge_discover`."""
    if isinstance(answer, Silence):
        return Exchange(seen, "discover").evidence(_K.HTTP_TIMEOUT)
    exchange = _of(answer, seen, "discover")
    if lost := _LOST.get(exchange.failure):
        return exchange.evidence(lost)
    return (
        exchange.anybodys()
        or _modern(exchange, modern)
        or exchange.no_answer()
        or _ambiguous(exchange, modern)
    )


def judge_http_initialize(answer: HttpAnswer, *, seen: Seen, allowed: tuple[str, ...]) -> Evidence:
    """Judge what came of a POST of `initialize`; `allowed` as in `judge_initialize`."""
    if isinstance(answer, Silence):
        return Exchange(seen, "initialize").evidence(_K.INITIALIZE_TIMEOUT)
    exchange = _of(answer, seen, "initialize")
    if exchange.broke_off:
        return exchange.evidence(_K.INITIALIZE_CLOSED)
    if lost := _INITIALIZE_LOST.get(exchange.failure):
        return exchange.evidence(lost)
    return exchange.anybodys() or _initialized(exchange, allowed)


def judge_get_sse(answer: str | HttpFailure | Silence, *, seen: Seen) -> Evidence:
    """Judge what came of the GET for HTTP+SSE.

    A string says what is wrong with its first event; "" where that names an endpoint on the same
    origin.
    """
    if isinstance(answer, Silence):
        return Exchange(seen, "get_sse").evidence(_K.SSE_TIMEOUT)
    if isinstance(answer, str):
        opened = Exchange(seen, "get_sse", status=200, problem=answer)
        return opened.evidence(_K.SSE_INVALID if answer else _K.SSE_OPENED)
    exchange = _of(answer, seen, "get_sse")
    if lost := _SSE_LOST.get(exchange.failure):
        return exchange.evidence(lost)
    return (
        exchange.anybodys()
        or _modern(exchange, MODERN)
        or exchange.no_answer()
        or exchange.evidence(_K.SSE_REFUSED)
    )


_K = EvidenceKind

_LOST: Final = {
    "credentials": _K.HTTP_LOGIN,
    "refused": _K.HTTP_UNREACHABLE,
    "dns": _K.HTTP_UNREACHABLE,
    "tls": _K.HTTP_UNREACHABLE,
    "reset": _K.HTTP_UNREACHABLE,
    "timeout": _K.HTTP_TIMEOUT,
}
_INITIALIZE_LOST: Final = {
    "credentials": _K.HTTP_LOGIN,
    "refused": _K.INITIALIZE_CLOSED,
    "dns": _K.INITIALIZE_CLOSED,
    "tls": _K.INITIALIZE_CLOSED,
    "reset": _K.INITIALIZE_CLOSED,
    "timeout": _K.INITIALIZE_TIMEOUT,
}
_SSE_LOST: Final = _LOST | {
    "reset": _K.SSE_CLOSED,
    "no_response": _K.SSE_CLOSED,
    "content": _K.SSE_INVALID,
    "encoding": _K.SSE_INVALID,
    "too_large": _K.SSE_INVALID,
}
"""Kinds of failure that leave nothing to be judged by its status."""

_QUOTING: Final = frozenset({"status", "session_lost", "content"})
"""Kinds whose text quotes the body: what a server wrote is evidence, and no part of a sentence."""

_CONNECTING: Final = frozenset({"refused", "dns", "tls", "timeout"})

_NO_SUCH_THING: Final = frozenset({400, 404, 405})
"""What a server says where it has no MCP endpoint at this URL, or none that takes a POST."""

_DISCOVERED: Final = frozenset({_K.DISCOVER_OK, _K.DISCOVER_NO_MUTUAL, _K.DISCOVER_LEGACY_ONLY})
_UNUSABLE: Final = "it is a valid answer, but it came as a failure"
_NO_MESSAGE: Final = "the answer is no JSON-RPC message"


def _of(answer: HttpReply | HttpFailure, seen: Seen, step: EvidenceStep) -> Exchange:
    if isinstance(answer, HttpReply):
        return Exchange(
            seen,
            step,
            status=answer.status,
            content_type=answer.content_type,
            message=answer.message,
            paired=answer.paired,
            delivered=200 <= answer.status < 300,
        )
    return Exchange(
        seen,
        "connect" if step == "discover" and answer.kind in _CONNECTING else step,
        status=answer.status or 0,
        content_type=answer.content_type,
        message=_message_in(answer.body),
        blank=not answer.body.strip(),
        failure=answer.kind,
        problem=_problem(answer),
    )


def _problem(failure: HttpFailure) -> str:
    """Its text, or of one that quotes the body what its headers ask for."""
    if failure.kind not in _QUOTING:
        return str(failure)
    return asks_for(
        failure.status or 0,
        challenge=failure.www_authenticate,
        retry_after_s=failure.retry_after_s,
    )


def _message_in(body: bytes) -> Reply | None:
    message = decode(body)[0]
    return message if isinstance(message, Result | Error | Broken) else None


def _modern(exchange: Exchange, modern: tuple[str, ...]) -> Evidence | None:
    """Evidence where the body is one that only a modern server writes."""
    if exchange.message is None:
        return None
    judged = judge_discover(
        exchange.message, seen=exchange.seen, paired=exchange.paired, modern=modern
    )
    if judged.kind in _DISCOVERED and not exchange.delivered:
        return exchange.evidence(_K.MODERN_ERROR, problem=_UNUSABLE)
    return exchange.told(judged) if judged.proves_modern else None


def _ambiguous(exchange: Exchange, modern: tuple[str, ...]) -> Evidence:
    if not exchange.succeeded:
        refused = exchange.status in _NO_SUCH_THING and not exchange.method_unknown
        return exchange.evidence(_K.HTTP_REFUSED if refused else _K.HTTP_ERROR)
    if exchange.message is None:
        if exchange.blank:
            return exchange.evidence(_K.HTTP_EMPTY)
        return exchange.evidence(_K.HTTP_MALFORMED, problem=_NO_MESSAGE)
    judged = judge_discover(
        exchange.message, seen=exchange.seen, paired=exchange.paired, modern=modern
    )
    kind = _K.HTTP_ERROR if judged.kind is _K.ERROR else _K.HTTP_MALFORMED
    return exchange.evidence(kind, problem=judged.problem)


def _initialized(exchange: Exchange, allowed: tuple[str, ...]) -> Evidence:
    judged = exchange.evidence(_K.INITIALIZE_INVALID, problem=exchange.problem or _NO_MESSAGE)
    if exchange.message is not None:
        judged = exchange.told(
            judge_initialize(
                exchange.message, seen=exchange.seen, allowed=allowed, paired=exchange.paired
            )
        )
    if judged.proves_modern:
        return judged
    missing = exchange.no_answer()
    if missing is not None:
        return missing
    if not exchange.succeeded:
        refused = exchange.status in _NO_SUCH_THING and not exchange.method_unknown
        return exchange.evidence(_K.INITIALIZE_REFUSED if refused else _K.INITIALIZE_ERROR)
    if judged.kind is _K.INITIALIZE_OK and not exchange.delivered:
        return exchange.evidence(_K.INITIALIZE_INVALID, problem=_UNUSABLE)
    return judged
