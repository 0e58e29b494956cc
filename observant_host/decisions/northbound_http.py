"""What HTTP adds to a request: headers that repeat the body, and what the client can read.

A header that says something else than the body is refused, so that a proxy which routed by the
header and the server that acts by the body never disagree.

Source: MCP 2026-07-28 basic/transports/streamable-http › Request Metadata, Value Encoding, Custom
Headers from Tool Parameters, Sending Messages.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.northbound import METHODS, Refusal, at_the_door
from observant_host.wire.mirrored_headers import MAX_SAFE_INTEGER
from observant_host.wire.revisions import HEADER_MISMATCH, MODERN

if TYPE_CHECKING:
    from observant_host.decisions.northbound import Question
    from observant_host.wire.mirrored_headers import Mirrored

Headers = Mapping[str, Sequence[str]]
"""Names in lower case, each with all its values."""
Said = Callable[[str, Sequence[str]], Sequence[str]]
"""All values of a header; the second where there is none."""

VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
SESSION: Final = "mcp-session-id"

JSON_TYPE: Final = "application/json"
SSE_TYPE: Final = "text/event-stream"


class Accepted(msgspec.Struct, frozen=True):
    """What the client says it reads. A client has to name both; one that names a single one gets
    that."""

    json: bool
    sse: bool


@lru_cache(maxsize=64)  # clients write a few of them, always the same
def accepted(header: str | None) -> Accepted:
    """By `Accept`; absent or `*/*`: both."""
    if not header or not header.strip():
        return Accepted(json=True, sse=True)
    kinds = {
        kind.strip().lower()
        for kind, _, parameters in (each.partition(";") for each in header.split(","))
        if not _NEVER.search(parameters)
    }
    both = "*/*" in kinds
    return Accepted(
        json=both or JSON_TYPE in kinds or "application/*" in kinds,
        sse=both or SSE_TYPE in kinds or "text/*" in kinds,
    )


@lru_cache(maxsize=64)
def is_json(content_type: str | None) -> bool:
    """Whether a body says that it is JSON; parameters and case do not matter."""
    return (content_type or "").partition(";")[0].strip().lower() == JSON_TYPE


def repeats(question: Question, said: Said) -> bool:
    """Whether the headers plainly repeat the body, each once and as it is written there: how nearly
    every request comes. Where not, `mismatch` says what is wrong, if anything is."""
    version, method, target = question.meta.version, question.method, question.target
    if method not in METHODS or version not in MODERN:
        return False
    if said(VERSION, ()) != [version] or said(METHOD, ()) != [method]:
        return False
    if METHODS[method].names is None:
        return True
    return (
        target is not None
        and said(NAME, ()) == [target]
        and target.isascii()
        and target.isprintable()
        and not target.startswith(_BEGIN)
    )


def mismatch(
    question: Question, headers: Headers, mirrored: Sequence[Mirrored] = ()
) -> Refusal | None:
    """The refusal where a header is missing, unreadable, or says something else than the body.

    `mirrored` are those of the tool that is called, by the schema that we list.
    """
    problem = (
        _differs(VERSION, headers, question.meta.version)
        or _differs(METHOD, headers, question.method)
        or _name_differs(question, headers)
        or _parameter_differs(question, headers, mirrored)
    )
    return None if problem is None else at_the_door(HEADER_MISMATCH, problem)


def _name_differs(question: Question, headers: Headers) -> str | None:
    known = METHODS.get(question.method)
    if known is None or known.names is None:
        return None
    said = question.target
    return None if said is None else _differs(NAME, headers, said)


def _parameter_differs(
    question: Question, headers: Headers, mirrored: Sequence[Mirrored]
) -> str | None:
    arguments = question.value("arguments") if mirrored else None
    for one in mirrored:
        value = _at(one.path, arguments)
        if value is None:
            if one.header.lower() in headers:
                return f"the header {one.header} repeats an argument that is not in the body"
            continue
        if one.header.lower() not in headers and not _needs_header(value):
            continue
        problem = _differs(one.header, headers, value)
        if problem is not None:
            return problem
    return None


def _differs(name: str, headers: Headers, value: Any) -> str | None:
    values = headers.get(name.lower(), ())
    if len(values) != 1:
        how = "is missing" if not values else "is there more than once"
        return f"the header {_titled(name)} {how}"
    text = decoded(values[0])
    if text is None:
        return f"the header {_titled(name)} cannot be read"
    if not _equal(text, value):
        return f"the header {_titled(name)} says something else than the body"
    return None


def decoded(value: str) -> str | None:
    """A header's text: plain, or out of `=?base64?…?=`; None where it is neither."""
    if not (value.startswith(_BEGIN) and value.endswith(_END) and len(value) >= _WRAPPING):
        return value if _VISIBLE.fullmatch(value) else None
    try:
        return b64decode(value[len(_BEGIN) : -len(_END)], validate=True).decode()
    except ValueError:
        return None


def _equal(text: str, value: Any) -> bool:
    """Integers compare as numbers: 42.0 is 42."""
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float | Decimal):
        return _NUMBER.fullmatch(text) is not None and Decimal(text) == Decimal(str(value))
    return isinstance(value, str) and text == value


def _needs_header(value: Any) -> bool:
    """What a header can carry: no object, no fraction, no integer that readers would round."""
    if isinstance(value, str | bool):
        return True
    if not isinstance(value, int | float | Decimal):
        return False
    return value == int(value) and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER


def _at(path: Sequence[str], value: Any) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _titled(name: str) -> str:
    return {VERSION: "MCP-Protocol-Version", METHOD: "Mcp-Method", NAME: "Mcp-Name"}.get(name, name)


_BEGIN: Final = "=?base64?"
_END: Final = "?="
_WRAPPING: Final = len(_BEGIN) + len(_END)
_VISIBLE: Final = re.compile(r"[\t -~]*")
_NUMBER: Final = re.compile(r"-?[0-9]{1,32}(\.[0-9]{1,32})?", re.ASCII)
_NEVER: Final = re.compile(r";?\s*q\s*=\s*0(\.0*)?\s*(;|$)", re.IGNORECASE)
