"""What an agent is told of servers that are not there: one bounded line each.

A model that knows why a tool is missing tells its user, instead of guessing at another way.

Source: MCP 2026-07-28 server/discover › instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LINES: Final = 20
MAX_LINE_CHARS: Final = 300
"""Twenty such lines are some 1,500 tokens at worst: they are in every agent's context."""

HEAD: Final = (
    "Some servers behind this host are not available now; calls of their tools are refused and "
    "nothing is executed:"
)


class Absent(msgspec.Struct, frozen=True):
    """An enabled server that takes no calls. `detail` is a sentence with the next step."""

    name: str
    state: str
    cause: str | None
    detail: str


def instructions(absent: Sequence[Absent]) -> str | None:
    """The text for `instructions`, None where every server is there."""
    if not absent:
        return None
    lines = [HEAD, *(_line(one) for one in absent[:MAX_LINES])]
    if len(absent) > MAX_LINES:
        lines.append(f"- and {len(absent) - MAX_LINES} more")
    return "\n".join(lines)


def _line(one: Absent) -> str:
    why = f" ({one.cause})" if one.cause else ""
    detail = f": {one.detail}" if one.detail else ""
    text = " ".join(f"- {one.name} is {one.state}{why}{detail}".split())
    return text if len(text) <= MAX_LINE_CHARS else text[: MAX_LINE_CHARS - 1] + "…"
