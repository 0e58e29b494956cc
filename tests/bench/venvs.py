"""Interpreters with the programs that we compare with, pinned in `locks/`, made once in a cache
folder (see `tests.interop.provisions`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop.provisions import provided, run, uv

if TYPE_CHECKING:
    from collections.abc import Callable

LOCKS = Path(__file__).parent / "locks"
NAMES = ("bare", "mcp", "fastmcp", "plot")
"""bare: aiohttp, orjson and uvloop, for loops written by hand and for servers; plot: matplotlib, of
all libraries that draw the one that is sure to be kept."""


class NoIndexError(RuntimeError):
    """A package could not be installed."""


def pythons(tell: Callable[[str], None], names: tuple[str, ...] = NAMES) -> dict[str, str]:
    """Name to the path of its interpreter; takes about a minute the first time.

    Raises NoIndexError with what to do.
    """
    return {name: _python(name, tell) for name in names}


def _python(name: str, tell: Callable[[str], None]) -> str:

    lock = LOCKS / f"{name}.txt"

    def install(folder: Path) -> None:
        count = len(lock.read_text().splitlines())
        tell(f"installing {name} ({count} packages) into {folder}")
        run(str(uv()), "venv", "-q", "--python", sys.executable, str(folder))
        run(str(uv()), "pip", "sync", "-q", "--python", str(folder / "bin/python"), str(lock))

    try:
        folder = provided(f"bench-{name}", lock.read_bytes(), install)
    except (RuntimeError, subprocess.SubprocessError, OSError) as error:
        raise NoIndexError(
            f"{name} could not be installed from the package index: {error}\n"
            "Check the network, or name a mirror in UV_DEFAULT_INDEX, then run the same command "
            "again: what is installed stays."
        ) from error
    return str(folder / "bin/python")
