"""How a telling looks as plain text; on a terminal the command line colours the same lines."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

INDENT: Final = "   "
WIDTH: Final = 97
"""Sentences are folded so that a step keeps its indent on a terminal of 100 columns."""


class PlainTeller:
    """Numbers the steps. `write(text, kind)` gets each line; kind: step, line, kept, broken."""

    def __init__(self, write: Callable[[str, str], None]) -> None:
        self._write = write
        self._steps = 0

    def step(self, title: str) -> None:
        self._steps += 1
        self._write("", "line")
        self._write(f"{self._steps}. {title}", "step")

    def line(self, text: str) -> None:
        for part in textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False):
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
