"""Is a tool's JSON Schema usable? Bounded, never fetching, never raising.

Sizes are checked before the library sees a schema; its regular expressions run on a linear engine.

Source: MCP 2026-07-28 basic/index › JSON Schema Usage; server/tools › Tool (inputSchema's root is
of type "object").
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw

MAX_BYTES: Final = 1024 * 1024
"""No model can be given a larger one; real ones are under 100 KB."""
MAX_DEPTH: Final = 64
"""Nested values: deeper than any hand-written schema, far below what exhausts a stack."""
MAX_NODES: Final = 20_000
"""Objects and arrays in one schema: bounds the time of compiling it."""


def input_schema_problem(schema: Raw | None) -> str | None:
    """A sentence why a tool with this `inputSchema` cannot be offered; None if it can.

    `schema` is the member as it came, None where it was absent.
    """
    raise NotImplementedError


def check_structured(schema: Raw, value: Raw) -> str | None:
    """A sentence why `value` breaks the (output) `schema`, None if it fits."""
    raise NotImplementedError
