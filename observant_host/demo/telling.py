"""How a telling looks as plain text; on a terminal the command line colours the same lines."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

INDENT: Final = "   "
WIDTH: Final = 77
"""Sentences are folded so that a step keeps its indent on a terminal of 80 columns."""


class PlainTeller:
    """Numbers the steps. `write(text, kind)` gets each line; kind: step, line, kept, broken."""

    def __init__(self, write: Callable[[str, str], None]) -> None:
        self._write = write
        self._steps = 0

    def step(self, title: str) -> None:
        self._steps += 1
        self._write("", "line")
        for part in _folded(f"{self._steps}. {title}", hanging=3):
            self._write(part, "step")

    def line(self, text: str) -> None:
        for part in _folded(text, hanging=5 if text.startswith("  ->") else 0):
            self._write(INDENT + part, "line")

    def table(self, columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
        cells = [[str(cell) for cell in row] for row in [columns, *rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        for row in cells:
            self.row("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)))

    def row(self, text: str) -> None:
        self._write(f"{INDENT}{text}".rstrip(), "line")

    def promise(self, text: str, *, kept: bool) -> None:
        self._write(f"   {'[ok]' if kept else '[BROKEN]'} {text}", "kept" if kept else "broken")


def _folded(text: str, *, hanging: int) -> list[str]:
    """Lines of at most WIDTH; all but the first indented by `hanging`. Words stay whole."""
    return textwrap.wrap(
        text,
        WIDTH,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
