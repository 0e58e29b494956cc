"""Tool arguments and names as HTTP headers, so that a proxy can route without reading bodies.

Source: MCP 2026-07-28 basic/transports/streamable-http › Request Metadata, Value Encoding, Custom
Headers; server/tools › x-mcp-header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Mapping

MirroredType = Literal["string", "integer", "boolean"]


class Mirrored(msgspec.Struct, frozen=True):
    """One annotated parameter: `header` is whole (`Mcp-Param-Region`), `path` leads to it."""

    header: str
    path: tuple[str, ...]
    type: MirroredType


def encode_value(value: str | int | bool) -> str:
    """A header value: plain where it can be, else `=?base64?…?=`."""
    raise NotImplementedError


def annotations(input_schema: Raw | Mapping[str, Any]) -> tuple[Mirrored, ...] | str:
    """The `x-mcp-header` annotations of a tool, or a sentence part naming what is wrong with them.

    Compiled once per tool; a tool with a violation must not be offered over HTTP.
    """
    raise NotImplementedError


def mirror(
    annotated: tuple[Mirrored, ...], arguments: Raw | Mapping[str, Any] | None
) -> tuple[tuple[str, str], ...]:
    """`Mcp-Param-*` headers of one call, encoded. Absent and null arguments have none."""
    raise NotImplementedError


def mcp_name(method: str, params: Raw | Mapping[str, Any] | None) -> str | None:
    """What `Mcp-Name` is about, as it is: `encode_value` makes it a header value."""
    raise NotImplementedError
