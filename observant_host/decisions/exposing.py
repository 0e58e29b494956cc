"""One listed thing as it is shown to agents: its server's own bytes, under our name.

Every member but the name goes out byte for byte, in its order. An `x-mcp-header` annotation that no
client may accept (a server over stdio can have one unnoticed) is taken out: the whole tool would be
dropped by each client for it.

Source: MCP 2026-07-28 server/tools › Tool Names, x-mcp-header.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from observant_host.wire.mirrored_headers import ANNOTATION, Mirrored, annotations_of
from observant_host.wire.values import decode_value

_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_encode: Final = msgspec.json.Encoder().encode

NO_ARGUMENTS: Final = Raw(b'{"type":"object"}')
"""Of a tool that was listed without an inputSchema: clients refuse one without."""


class Exposed(msgspec.Struct, frozen=True):
    """`raw` is what agents get; `mirrored` are the arguments that HTTP headers must repeat."""

    raw: Raw
    mirrored: tuple[Mirrored, ...] = ()


def exposed_tool(raw: Raw, name: str, local_name: str) -> Exposed:
    """A tool under `name`. `raw` was sifted: it is an object with a name."""
    members: dict[str, Raw] | None = None
    mirrored: tuple[Mirrored, ...] = ()
    text = bytes(raw)
    if ANNOTATION.encode() in text or b"\\u" in text:
        members = _members(raw)
        found = annotations_of(members.get("inputSchema"))
        if isinstance(found, str):
            members["inputSchema"] = Raw(_encode(without_annotations(members["inputSchema"])))
        else:
            mirrored, members = found, None
    if members is None and name == local_name:
        return Exposed(raw, mirrored)
    members = members or _members(raw)
    return Exposed(renamed(members, name), mirrored)


def exposed_prompt(raw: Raw, name: str, local_name: str) -> Exposed:
    return Exposed(raw if name == local_name else renamed(_members(raw), name))


def renamed(members: dict[str, Raw], name: str) -> Raw:
    """The object with another `name`, all else as it came."""
    return Raw(_encode({**members, "name": name}))


def without_annotations(schema: Raw) -> Any:
    """The schema without any `x-mcp-header`, wherever it stands but in data."""
    return _stripped(decode_value(schema))


def _stripped(value: Any) -> Any:
    match value:
        case dict():
            return {key: _stripped(one) for key, one in value.items() if key != ANNOTATION}
        case list():
            return [_stripped(one) for one in value]
        case _:
            return value
