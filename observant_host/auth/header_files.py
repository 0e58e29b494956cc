"""Header values that come from files, read again so that a rotated secret needs no restart."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

from observant_host.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.timing.clock import Clock

FRESH_S: Final = 2.0
"""How old a value may be: a burst of calls reads a file once, a rotation is seen at once."""

MAX_FILE_BYTES: Final = 64 * 1024


class HeaderFiles:
    """`parts` of each header: literal text and absolute paths in turn, beginning with text.

    What was read holds before `fresh_until` (monotonic seconds).
    """

    def __init__(self, server: str, parts: Mapping[str, tuple[str, ...]], *, clock: Clock) -> None:
        self._server = server
        self._parts = parts
        self._clock = clock
        self._values: Mapping[str, str] = {}
        self.fresh_until = -1.0 if parts else math.inf

    async def headers(self, *, now: bool = False) -> Mapping[str, str]:
        """Raises TransportError naming key and file. `now` reads even what is fresh."""
        if self._parts and (now or self._clock.monotonic() >= self.fresh_until):
            self._values = await asyncio.to_thread(self._read)
            self.fresh_until = self._clock.monotonic() + FRESH_S
        return self._values

    def _read(self) -> dict[str, str]:
        return {
            name: "".join(
                self._insert(name, part) if index % 2 else part for index, part in enumerate(parts)
            )
            for name, parts in self._parts.items()
        }

    def _insert(self, name: str, path: str) -> str:
        try:
            with Path(path).open("rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise ValueError(f"is over {MAX_FILE_BYTES} bytes")
            return data.decode("utf-8-sig").rstrip("\r\n")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is no short UTF-8 text"
            raise TransportError(
                f"servers.{self._server}.headers.{name}: the file {path} cannot be used: {reason}"
            ) from error
