"""What a failed HTTP exchange means for its request: an error of the server's, or a loss.

A status alone proves little about execution: a refusal (4xx) is taken for what it says, anything
else that came after the request had left may have been executed, and the error says so.

Source: MCP 2026-07-28 basic/transports/streamable-http › Sending Messages; RFC 9110 15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.errors import CallTimeout, HttpFailure, InvalidResult, RateLimited, Unavailable
from observant_host.peers import endings
from observant_host.wire import jsonrpc
from observant_host.wire.revisions import INVALID_PARAMS, METHOD_NOT_FOUND, MODERN_ERRORS

if TYPE_CHECKING:
    from observant_host.errors import CallError, Delivery, Fault
    from observant_host.telemetry.facade import Operation
    from observant_host.telemetry.masking import Masker
    from observant_host.wire.jsonrpc import Broken, Error, Result

TIMED_OUT_STATUS: Final = 408
TOO_MANY: Final = 429
UNAUTHORIZED: Final = frozenset({401, 403})


class SessionGone(Unavailable):
    """The server no longer knows our session, so it executed nothing; a new session may serve."""


def message_in(failure: HttpFailure) -> Result | Error | Broken | None:
    """The JSON-RPC reply that a refusal carried, if it did."""
    for message in jsonrpc.decode(failure.body) if failure.body else ():
        if not isinstance(message, jsonrpc.NotAMessage | jsonrpc.Request | jsonrpc.Notification):
            return message
    return None


def of_request(
    server: str, request_id: int, error: Exception, *, delivery: Delivery, masker: Masker
) -> CallError:
    """The error of the call whose exchange failed. `delivery` is what its frame got to."""
    if not isinstance(error, HttpFailure):
        return endings.lost(server, error, delivery)
    loss = _said_in(error, request_id, masker) or _lost(server, error)
    loss.__cause__ = error
    return loss


def _said_in(failure: HttpFailure, request_id: int, masker: Masker) -> CallError | None:
    """The server's own error, where its refusal holds one that can be meant for this request."""
    said = message_in(failure)
    if not isinstance(said, jsonrpc.Error) or failure.kind == "session_lost":
        return None
    if failure.status == TOO_MANY:
        return None  # however it is put: it asks to be left alone, and has done nothing
    named = said.id is None or _is_ours(said.id, request_id)
    return endings.rpc_error(said, masker) if named else None


def note_status(op: Operation, failed: BaseException) -> None:
    """Tell of a request that failed with what HTTP status that was, where there was one."""
    cause = failed.__cause__
    if isinstance(cause, HttpFailure) and cause.status is not None:
        op.note(http_status=cause.status)


REFUSALS: Final = frozenset({METHOD_NOT_FOUND, INVALID_PARAMS, *MODERN_ERRORS})
"""Errors that a modern server gives with HTTP 400 or 404: they concern that one request."""

ANNOUNCED: Final = frozenset({"tools/list", "tools/call", "prompts/get", "resources/read"})
"""Methods that are only used where the server has announced them, and that it then knows."""


def raises_doubt(error: Exception, request_id: int, method: str) -> bool:
    """Whether the exchange failed in a way in which the server that this life began with would not
    refuse one request: then it is worth asking whether it is still there."""
    if (
        not isinstance(error, HttpFailure)
        or error.kind == "session_lost"
        or error.status == TOO_MANY
    ):
        return False
    said = message_in(error)
    if not isinstance(said, jsonrpc.Error) or not _is_ours(said.id, request_id):
        return True
    return said.code not in REFUSALS or is_unlike_itself(said, method)


def casts_doubt(failed: BaseException) -> bool:
    """Whether a request failed as it would on a path that is dead: then what else goes that way
    and only waits may be dead too."""
    return isinstance(failed, CallTimeout | Unavailable) and failed.delivery == "sent_no_reply"


def is_unlike_itself(said: Error, method: str) -> bool:
    """Whether a server says that it does not know what it announced."""
    return said.code == METHOD_NOT_FOUND and method in ANNOUNCED


def _lost(server: str, failure: HttpFailure) -> CallError:
    if failure.kind == "too_large" and failure.status is not None and failure.status < 300:
        return InvalidResult(f"{server}: the reply was longer than allowed: {failure}")
    if failure.kind == "session_lost":
        return SessionGone(f"{server} no longer knows this session: {failure}")
    if not failure.sent:
        fault: Fault = "policy" if failure.kind == "credentials" else "peer"
        return Unavailable(f"{server} was sent nothing: {failure}", fault=fault)
    delivery = _delivery(failure)
    if failure.status == TOO_MANY:
        return RateLimited(
            f"{server} limits its rate and refused the call: {failure}",
            retry_after_s=failure.retry_after_s,
            delivery=delivery,
        )
    fault = "policy" if failure.status in UNAUTHORIZED else "peer"
    how = " (it was refused)" if delivery == "replied" else ""
    lost = Unavailable(f"{server} gave no result{how}: {failure}", delivery=delivery, fault=fault)
    lost.retry_after_s = failure.retry_after_s
    return lost


def _delivery(failure: HttpFailure) -> Delivery:
    status = failure.status or 0
    refused = failure.kind == "status" and 400 <= status < 500 and status != TIMED_OUT_STATUS
    return "replied" if refused or failure.kind == "redirect" else "sent_no_reply"


def _is_ours(said: object, request_id: int) -> bool:
    return type(said) is int and said == request_id
