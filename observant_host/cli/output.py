"""What a person, a pipe or a script sees: stdout carries the answer, stderr everything else.

Colours, boxes and progress appear only on a terminal (`NO_COLOR` and `TERM=dumb` are honoured);
elsewhere the same words come as plain, aligned text. Text that servers wrote is stripped of
control characters here, so that no server can move a cursor or recolour a terminal.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TextIO

from observant_host.cli.fitting import fits, folded, row_by_row, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click
    from rich.console import Console

STATE_STYLES = {
    "ready": "green",
    "starting": "cyan",
    "degraded": "yellow",
    "backoff": "yellow",
    "unavailable": "red",
    "disabled": "dim",
    "stopped": "dim",
    "modern": "green",
    "legacy": "yellow",
    "ok": "green",
}
"""Styles of words that mean the same in every table."""


SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
)
"""Whole control sequences: without their first byte they would be noise in a sentence."""


def printable(text: object) -> str:
    """`text` without control characters (C0, C1, DEL); newlines and tabs become one space."""
    return harmless(" ".join(str(text).replace("\t", " ").splitlines()))


def harmless(text: str) -> str:
    """`text` without control sequences and characters, but with its lines and tabs."""
    text = SEQUENCE.sub("", text)
    return "".join(c for c in text if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f"))


def wants_style(stream: TextIO) -> bool:
    """True where colours and boxes help: a terminal that is not dumb and NO_COLOR unset."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


@dataclass
class Screen:
    """One command's way to speak. `verbosity`: -1 (-q), 0, 1 (-v), 2 (-vv)."""

    verbosity: int = 0
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    @property
    def quiet(self) -> bool:
        return self.verbosity < 0

    @property
    def live(self) -> bool:
        """True where progress may be drawn: stderr is a terminal and nobody asked for quiet."""
        return wants_style(self.err) and not self.quiet

    def console(self, stream: TextIO) -> Console:
        """A rich console on one of our streams; import cost is paid only when it is used."""
        from rich.console import Console

        return Console(file=stream, highlight=False, emoji=False, soft_wrap=False)

    def answer(self, text: str = "", *, style: str = "") -> None:
        """One line (or several) of the answer, on stdout."""
        self._write(self.out, text, style)

    def prose(self, text: str, *, style: str = "", hanging: int | None = None) -> None:
        """A sentence of the answer: on a terminal it is folded, with `hanging` columns before
        what does not fit."""
        self._write(self.out, self._fitted(self.out, text, hanging), style)

    def say(self, text: str, *, style: str = "", hanging: int | None = None) -> None:
        """A remark for a person, on stderr; silent with -q. `hanging` as in `prose`."""
        if not self.quiet:
            self._write(self.err, self._fitted(self.err, text, hanging), style)

    def say_live(self, text: str) -> None:
        """A remark only for somebody who watches a terminal (elsewhere log lines tell it)."""
        if self.live:
            self._write(self.err, self._fitted(self.err, text), "bold")

    def detail(self, text: str) -> None:
        """A remark that only -v asks for."""
        if self.verbosity > 0:
            self._write(self.err, self._fitted(self.err, text), "dim")

    def fail(self, text: str) -> None:
        """An error sentence on stderr, also with -q."""
        said = self._fitted(self.err, f"error: {text}", len("error: "))
        self._write(self.err, said, "bold red")

    def json(self, value: Any) -> None:
        """One JSON document on stdout; `msgspec.Raw` inside it passes through byte for byte."""
        import msgspec

        pretty = msgspec.json.format(msgspec.json.encode(value), indent=2)
        self.out.write(pretty.decode() + "\n")

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[object]], *, fold: str = ""
    ) -> None:
        """`rows` under `columns` on stdout. `fold` names the column that may wrap on a terminal;
        on one too narrow for that, each row is told by itself."""
        cells = [[printable(cell) for cell in row] for row in rows]
        if not self.out.isatty():
            self.out.write(aligned(columns, cells))
            return
        width = width_of(self.out)
        if not fits(columns, cells, fold=fold, width=width):
            for first, below in row_by_row(columns, cells, fold=fold, width=width):
                self._write(self.out, first, "bold")
                if below:
                    self._write(self.out, below, "")
        elif wants_style(self.out):
            self._rich_table(columns, cells, fold)
        else:
            self.out.write(aligned(columns, cells, fold=fold, width=width))

    def _fitted(self, stream: TextIO, text: str, hanging: int | None = None) -> str:
        if not stream.isatty():
            return text
        return folded(harmless(text), width_of(stream), hanging=hanging)

    def _rich_table(
        self, columns: Sequence[str], cells: Sequence[Sequence[str]], fold: str
    ) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for column in columns:
            table.add_column(column, overflow="fold", no_wrap=column != fold)
        for row in cells:
            table.add_row(*(Text(cell, style=STATE_STYLES.get(cell, "")) for cell in row))
        self.console(self.out).print(table)

    def _write(self, stream: TextIO, text: str, style: str) -> None:
        text = harmless(text)
        if style and wants_style(stream):
            from rich.text import Text

            self.console(stream).print(Text(text, style=style), soft_wrap=True)
        else:
            stream.write(text + "\n")
        stream.flush()


def aligned(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    fold: str = "",
    width: int | None = None,
) -> str:
    """Plain columns, two spaces apart, nothing cut: what a pipe gets. With `width`, for a terminal
    without colours, a cell of the last column `fold` is continued below itself."""
    lines = [[column.upper() for column in columns], *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    hanging = sum(widths[:-1]) + 2 * (len(widths) - 1)
    text = "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    if width is not None and columns and columns[-1] == fold:
        text = folded(text, width, hanging=hanging)
    return text + "\n"


def screen_of(ctx: click.Context) -> Screen:
    """The command's Screen (made by the top group; a fresh one where a command runs alone)."""
    found = ctx.find_object(Screen)
    return found if found is not None else Screen()
