"""What fits into a terminal of few columns: folded sentences, and tables told row by row."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

FEW_COLUMNS: Final = 80
"""Assumed where a terminal does not tell its width."""

LEAST_FOLDED: Final = 24
"""A column of sentences that is narrower than this is a ladder of words."""

BETWEEN: Final = 3
"""What a drawn table puts between two columns; two more stand around all of them."""


def width_of(stream: TextIO) -> int:
    """Columns of a terminal; `COLUMNS` wins, as it does for others who draw."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or FEW_COLUMNS
    except (OSError, ValueError):
        return FEW_COLUMNS


def folded(text: str, width: int, *, hanging: int | None = None) -> str:
    """`text` folded between words, each line by itself; one long word (a path) stays whole.

    What is folded off is indented by `hanging`, or as its line is.
    """
    return "\n".join(_folded(line, width, hanging) for line in text.split("\n"))


def _folded(line: str, width: int, hanging: int | None) -> str:
    if len(line) <= width:
        return line
    own = len(line) - len(line.lstrip(" "))
    indent = " " * (own if hanging is None else hanging)
    parts = textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(parts)


def fits(columns: Sequence[str], cells: Sequence[Sequence[str]], *, fold: str, width: int) -> bool:
    """Whether a drawn table is readable here: only its `fold` column may be narrower than it is."""
    widths = [max(len(line[place]) for line in [columns, *cells]) for place in range(len(columns))]
    if fold in columns:
        place = columns.index(fold)
        widths[place] = min(widths[place], LEAST_FOLDED)
    return sum(widths) + BETWEEN * (len(columns) - 1) + 2 <= width


def row_by_row(
    columns: Sequence[str], cells: Sequence[Sequence[str]], *, fold: str, width: int
) -> list[tuple[str, str]]:
    """Each row as a line with its first cell, and below it the others, with their columns' names.

    Pairs (first cell, what is below it), the second folded and indented, and empty at times.
    """
    told = []
    for first, *others in cells:
        named = list(zip(columns[1:], others, strict=True))
        short = [f"{column} {cell}" for column, cell in named if cell and column != fold]
        long = [cell for column, cell in named if cell and column == fold]
        below = [", ".join(short), *long]
        told.append((first, "\n".join(folded(f"    {one}", width) for one in below if one)))
    return told
