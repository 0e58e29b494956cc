"""Requests that differ in their numbers and arguments only, written by one `%`.

A template is what the ordinary writer writes, with holes where it was given what no caller gives:
so both write the same bytes, and there is nothing about a request that is said here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[int, Raw, str | None, int | None], bytes]

_ID: Final = 7_310_580_239_147_160_583
_ARGUMENTS: Final = b'{"observant_host.template":"arguments"}'
_TRACEPARENT: Final = "observant_host.template.traceparent"


class Template(msgspec.Struct, frozen=True, gc=False):
    """`text % (id, arguments)` is a frame; with `traced` also (trace id, span id, 0 or 1) after
    these, with `numbered` the id once more, as its progress token, at the end."""

    text: bytes
    traced: bool
    numbered: bool


def template(write: Write, *, traced: bool, numbered: bool) -> Template | None:
    """Of what `write(id, arguments, traceparent, progress_token)` writes. None where its own words
    are those by which the holes are found, or where it writes them in another order."""
    frame = write(_ID, Raw(_ARGUMENTS), _TRACEPARENT if traced else None, _ID if numbered else None)
    number, trace = b"%d" % _ID, _TRACEPARENT.encode()
    holes = [(number, b"%d"), (_ARGUMENTS, b"%b")]
    if traced:
        holes.append((trace, b"00-%032x-%016x-%02x"))
    if numbered:
        holes.append((number, b"%d"))
    counts = (frame.count(number), frame.count(_ARGUMENTS), frame.count(trace))
    if counts != (1 + numbered, 1, int(traced)):
        return None
    text, rest = b"", frame
    for words, hole in holes:
        before, found, rest = rest.partition(words)
        if not found:
            return None
        text += before.replace(b"%", b"%%") + hole
    return Template(text + rest.replace(b"%", b"%%"), traced, numbered)
