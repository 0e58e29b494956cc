"""How a telling looks as plain text; on a terminal the command line colours the same lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class PlainTeller:
    """Numbers the steps. `write(text, kind)` gets each line; kind: step, line, kept, broken."""

    def __init__(self, write: Callable[[str, str], None]) -> None:
        self._write = write
        self._steps = 0

    def step(self, title: str) -> None:
        self._steps += 1
        self._write("", "line")
        self._write(f"{self._steps}. {title}", "step")

    def line(self, text: str = "") -> None:
        self._write(f"   {text}".rstrip(), "line")

    def table(self, columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
        cells = [[str(cell) for cell in row] for row in [columns, *rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        for row in cells:
            self.line("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)))

    def promise(self, text: str, *, kept: bool) -> None:
        self._write(f"   {'[ok]' if kept else '[BROKEN]'} {text}", "kept" if kept else "broken")
