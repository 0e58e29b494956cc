"""Protocol revisions and error codes: dates and numbers that everything else refers to by name.

Source: MCP 2026-07-28, basic/versioning › Terminology, basic/index › Error Codes.
"""

from __future__ import annotations

from typing import Final

MODERN: Final = ("2026-07-28",)
"""Revisions that repeat version and capabilities in each request, preferred first."""

LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions that begin with `initialize`, preferred first."""

HTTP_SSE_REVISION: Final = "2024-11-05"
"""The one whose HTTP transport is HTTP+SSE."""

PREFERRED_MODERN: Final = MODERN[0]
PREFERRED_LEGACY: Final = LEGACY[0]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022

MODERN_ERRORS: Final = frozenset(
    {HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION}
)
"""The three codes, and no others, that prove a modern server: never a range."""
