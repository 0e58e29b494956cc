"""Structured content beside what its tool promised: judged aside where it takes long.

Source: MCP 2026-07-28 server/tools › Output Schema. `structuredContent` may be any JSON value, null
too; it exists since 2025-06-18.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from observant_host.schema_check import FEW_STEPS, check_output

if TYPE_CHECKING:
    from observant_host.schema_check import OutputProblem

FIRST_REVISION: Final = "2025-06-18"

SMALL_BYTES: Final = 16 * 1024
"""Content that is judged while others wait: decoding and counting it takes less than 5 ms."""


class _Result(msgspec.Struct, rename="camel"):
    structured_content: Raw | UnsetType = UNSET


_result: Final = msgspec.json.Decoder(_Result).decode


async def structured_problem(schema: Raw, result: Raw, *, version: str) -> OutputProblem | None:
    """What is wrong with the `structuredContent` of a result; None if nothing is, or where its
    revision knows none. Never raises."""
    if version < FIRST_REVISION:
        return None
    try:
        content = _result(result).structured_content
    except (msgspec.MsgspecError, RecursionError):
        return None  # whoever looks into the result will hear of it
    value = None if content is UNSET else content
    if value is None or len(bytes(value)) <= SMALL_BYTES:
        problem = check_output(schema, value, steps=FEW_STEPS)
        if problem is None or problem.kind != "not_judged":
            return problem
    return await asyncio.to_thread(check_output, schema, value)
