"""JSON-RPC envelopes: decoded outside, raw inside.

`decode` never raises: what is no message comes back as `NotAMessage`, what is broken as `Broken`
with whatever id could be read, so that one bad message fails one request.

Source: MCP 2026-07-28 basic/index › Messages; JSON-RPC 2.0.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from observant_host.wire.long_integers import MAX_DIGITS, refuse_long_integers
from observant_host.wire.revisions import MODERN_ERRORS
from observant_host.wire.salvage import salvage
from observant_host.wire.utf8 import check_utf8

Frame = bytes | bytearray
"""One message as it came. A large one is the very buffer that it was gathered in, which is not
copied for the sake of its type; nobody changes it any more."""

Id = int | str | float | bool | None
"""An id as it came. Compare with `same_id`: 1, 1.0, True and "1" are four different ids."""

MAX_BATCH: Final = 1000
"""Elements of one array that are looked at: no sane server batches more."""


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


class Usual(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A Result as most are, which the decoder alone can tell from all others."""

    jsonrpc: Literal["2.0"]
    id: int
    result: Raw


class Error(msgspec.Struct, frozen=True, gc=False):
    """`code` is 0 and `message` "" where the peer sent no integer or no string.

    Where the code was no integer, or there is neither message nor data, `data` is the whole error
    as it was sent, so that nothing of it is lost. `id` is None for an explicit null and for an
    absent id.
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


def same_id(a: Id, b: Id) -> bool:
    """Equal in type and value: JSON knows 1, 1.0, true and "1" as different things."""
    return type(a) is type(b) and a == b


def normalises_to(request_id: Id) -> int | None:
    """The integer that a careless peer may have meant: "1", 1.0 and true mean 1.

    Only ever used to fail a request at once, never to pair a reply with it.
    """
    if isinstance(request_id, str):
        return int(request_id) if _SHORT_NUMBER.fullmatch(request_id) else None
    if isinstance(request_id, float):
        return int(request_id) if request_id.is_integer() else None
    return None if request_id is None else int(request_id)


def usual(frame: Frame) -> Usual | None:
    """What most of what comes is: a short result in ASCII under an integer id, and nothing else.
    None: it may be anything, and `decode` says what. Never raises."""
    if len(frame) > MAX_DIGITS or not frame.isascii():
        return None
    try:
        return _usual(frame)
    except (ValueError, RecursionError):
        return None


def decode(frame: Frame, *, batches: bool = False) -> tuple[Inbound, ...]:
    """One frame (a line, a body, an event's data) to what it says. Never raises.

    One element, but for JSON arrays. With `batches` (revision 2025-03-26) an array gives its
    elements; without, each reply in it is `Broken` under its own id, so that nobody waits for it.
    Of duplicate keys the last one wins.
    """
    if frame[:1] != b"{":
        return _decode_odd(frame, batches)
    try:
        if not frame.isascii():
            check_utf8(frame)
        if len(frame) > MAX_DIGITS:
            refuse_long_integers(frame)
        message = _envelope(frame)
        if (  # the usual request, told apart first; for the usual result there is `usual`
            type(message.method) is str
            and message.result is UNSET
            and message.error is UNSET
            and type(message.id) is int
            and message.jsonrpc == "2.0"
            and not isinstance(message.params, UnsetType)
            and len(message.params) > len(b"null")
        ):
            return (Request(message.id, message.method, message.params),)
        return (_classify(message),)
    except RecursionError:
        return (_broken(frame, "it is nested too deeply"),)
    except UnicodeDecodeError:
        return (_broken(frame, "it is not valid UTF-8"),)
    except ValueError as error:  # of msgspec's decoders, and ours for long integers
        return (_broken(frame, f"it cannot be decoded ({error})"),)


def recover(excerpt: bytes) -> Broken | NotAMessage:
    """What an excerpt of an oversized line still tells: the id of the reply that is lost."""
    found = salvage(excerpt)
    if not found.reply:
        return NotAMessage("the line was longer than max_message_bytes allows")
    return Broken(found.id, "the reply was longer than max_message_bytes allows")


def encode_result(request_id: int | str, result: Raw | bytes) -> bytes:
    """A legacy answer to a server's request; `result` is one JSON value."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode_id(request_id), bytes(result))


def encode_error(request_id: int | str, code: int, message: str) -> bytes:
    """A legacy refusal of a server's request."""
    body = msgspec.json.encode({"code": code, "message": message})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode_id(request_id), body)


_SHORT_NUMBER: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_WHITESPACE: Final = b" \t\r\n"


class _Envelope(msgspec.Struct, gc=False):
    jsonrpc: Any = None
    id: Any = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _ErrorBody(msgspec.Struct, gc=False):
    code: Any = None
    message: Any = None
    data: Raw | UnsetType = UNSET


_envelope: Final = msgspec.json.Decoder(_Envelope).decode
_usual: Final = msgspec.json.Decoder(Usual).decode
_error_body: Final = msgspec.json.Decoder(_ErrorBody).decode
_elements: Final = msgspec.json.Decoder(list[Raw]).decode

# msgspec skips over what stays raw and checks its structure, but neither its UTF-8 nor its numbers:
# `decode` adds these two. Deep nesting is a RecursionError there, which is no MsgspecError.


def _decode_odd(frame: Frame, batches: bool) -> tuple[Inbound, ...]:
    text = frame.strip(_WHITESPACE)
    if text[:1] == b"{":
        return decode(text)
    if text[:1] != b"[":
        return (NotAMessage("the line is no JSON object"),)
    try:
        elements = _elements(text)
    except (msgspec.MsgspecError, RecursionError):
        return (NotAMessage("the line begins like a JSON array and is none"),)
    if not 0 < len(elements) <= MAX_BATCH:
        return (NotAMessage(f"the line is a JSON array of {len(elements)} elements"),)
    inside = [decode(bytes(element))[0] for element in elements]
    return tuple(inside) if batches else tuple(_unwrapped(message) for message in inside)


def _unwrapped(message: Inbound) -> Broken | NotAMessage:
    problem = "the message is wrapped in a JSON array, which this protocol revision does not have"
    match message:
        case Result(id=request_id):
            return Broken(request_id, problem)
        case Error(id=request_id, code=code):
            return Broken(request_id, problem, _recognised(code))
        case Broken():
            return message
        case _:
            return NotAMessage(problem)


def _broken(frame: Frame, problem: str) -> Broken | NotAMessage:
    """A second, tolerant look at what the decoder refused: only the id and the kind are sought."""
    found = salvage(frame)
    if not found.reply:
        return NotAMessage(f"the line is no message: {problem}")
    return Broken(found.id, f"the reply is broken: {problem}", _recognised(found.code))


def _classify(message: _Envelope) -> Inbound:
    if message.error is not UNSET and bytes(message.error) == b"null":
        message.error = UNSET  # some servers add it to every success: null is absence
    if message.method is not UNSET:
        is_reply = message.result is not UNSET or message.error is not UNSET
        return _contradiction(message) if is_reply else _incoming(message)
    if not isinstance(message.error, UnsetType):
        return _error(message, message.error)
    if not isinstance(message.result, UnsetType):
        return _result(message, message.result)
    return _neither(message)


def _incoming(message: _Envelope) -> Request | Notification | NotAMessage:
    method, request_id = message.method, message.id
    if message.jsonrpc != "2.0" or not isinstance(method, str):
        return NotAMessage("a request or notification that is not JSON-RPC 2.0")
    params = _present(message.params)
    if request_id is UNSET:
        return Notification(method, params)
    if type(request_id) is int or isinstance(request_id, str):
        return Request(request_id, method, params)
    return NotAMessage("a request whose id is neither a string nor an integer")


def _result(message: _Envelope, result: Raw) -> Result | Broken | NotAMessage:
    request_id = _readable(message.id)
    if message.jsonrpc != "2.0":
        return _not_version_2(request_id, None)
    if request_id is None:
        return Broken(None, "a result that names no request")
    return Result(request_id, result)


def _error(message: _Envelope, raw: Raw) -> Error | Broken | NotAMessage:
    request_id, error = _readable(message.id), _read_error(raw)
    if message.jsonrpc != "2.0":
        return _not_version_2(request_id, _recognised(error.code))
    if message.result is not UNSET and bytes(message.result) != b"null":
        return _contradiction(message)
    data = None if isinstance(error.data, UnsetType) else error.data
    return Error(request_id, error.code, error.message, data)


def _neither(message: _Envelope) -> Broken | NotAMessage:
    if message.jsonrpc == "2.0" and message.id is not UNSET:
        return Broken(_readable(message.id), "the reply has neither a result nor an error")
    return NotAMessage("a JSON object that is no JSON-RPC message")


def _contradiction(message: _Envelope) -> Broken:
    code = None if isinstance(message.error, UnsetType) else _read_error(message.error).code
    problem = "the reply has both a result and an error"
    if message.method is not UNSET:
        problem = "the message is both a request and a reply"
    return Broken(_readable(message.id), problem, _recognised(code))


def _not_version_2(request_id: Id, code: int | None) -> Broken | NotAMessage:
    if request_id is None and code is None:
        return NotAMessage("a JSON object that is no JSON-RPC message")
    return Broken(request_id, "the reply is not marked as JSON-RPC 2.0", code)


def _read_error(raw: Raw) -> _ErrorBody:
    """The error's parts, each replaced by 0 or "" where it has the wrong type."""
    try:
        body = _error_body(raw)
    except (msgspec.MsgspecError, RecursionError):
        return _ErrorBody(0, "", raw)
    if type(body.code) is int and isinstance(body.message, str):
        return body
    message = body.message if isinstance(body.message, str) else ""
    if type(body.code) is not int:
        return _ErrorBody(0, message, raw)
    if body.data is UNSET and body.code not in MODERN_ERRORS:
        return _ErrorBody(body.code, message, raw)
    return _ErrorBody(body.code, message, body.data)


def _readable(request_id: Any) -> Id:
    return request_id if isinstance(request_id, int | str | float) else None


def _present(raw: Raw | UnsetType) -> Raw | None:
    return None if isinstance(raw, UnsetType) or bytes(raw) == b"null" else raw


def _recognised(code: int | None) -> int | None:
    return code if code in MODERN_ERRORS else None


def _encode_id(request_id: int | str) -> bytes:
    return b"%d" % request_id if isinstance(request_id, int) else msgspec.json.encode(request_id)
