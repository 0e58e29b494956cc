"""Headers as text: which may be given for a server, and how a command writes them down.

No message here shows a value, or a line that may be one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.config.shown import worth_masking

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_HEADERS: Final = 64
MAX_VALUE_CHARS: Final = 8 * 1024
"""Common servers refuse a longer header line."""

RESERVED: Final = frozenset(
    {"accept", "accept-encoding", "connection", "content-encoding", "content-length"}
    | {"content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version"}
    | {"mcp-session-id", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""What the transport says itself: a second opinion would garble the protocol."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LINE: Final = re.compile(r"([^:\s]+)[ \t]*:[ \t]*(.*?)[ \t]*")


class Given(msgspec.Struct, frozen=True):
    """What a command gave; `expires_in_s` None where it did not say."""

    headers: dict[str, str]
    expires_in_s: float | None = None


def problem_of(headers: Mapping[str, str]) -> str | None:
    """Why these cannot be sent, as the end of a sentence; None where they can."""
    if len(headers) > MAX_HEADERS:
        return f"has more than {MAX_HEADERS} headers"
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            return f"has a header name that is none: {name[:40]!r}"
        if name.lower() in RESERVED or name.lower().startswith("mcp-param-"):
            return f"sets {name}, which belongs to the protocol"
        if len(value) > MAX_VALUE_CHARS:
            return f"gives {name} a value of more than {MAX_VALUE_CHARS} characters"
        if not value.isprintable() and re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
            return f"gives {name} a value with a line break or another control character"
    return None


def read_output(output: bytes) -> Given | str:
    """A JSON object `{"headers": {…}, "expires_in_s": n}`, or lines `Name: value`."""
    text = output.removeprefix(b"\xef\xbb\xbf").strip()
    given = _read_json(text) if text.startswith(b"{") else _read_lines(text)
    if isinstance(given, str):
        return given
    if not given.headers:
        return "printed no header"
    return problem_of(given.headers) or given


def _read_json(text: bytes) -> Given | str:
    try:
        given = msgspec.json.decode(text, type=Given)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return 'printed JSON that is not {"headers": {"Name": "value"}, "expires_in_s": 60}'
    if given.expires_in_s is not None and not 0 <= given.expires_in_s < float("inf"):
        return "printed an expires_in_s that is no number of seconds"
    return given


def _read_lines(text: bytes) -> Given | str:
    headers: dict[str, str] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            return f'printed a line {number} that is not "Name: value"'
        headers[match[1]] = match[2]
    return Given(headers)


def secrets_in(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The values, and of `Bearer TOKEN` the token, which turns up without its scheme."""
    found = list(headers.values())
    for value in headers.values():
        scheme, _, token = value.partition(" ")
        if scheme.lower() in ("bearer", "basic", "token"):
            found.append(token.strip())
    return worth_masking(found)
