"""What each client's script tells of the features it tried: one JSON object on stdout.

Uses the standard library only: it runs beside any client in that client's own environment.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable

FEATURES = ("list", "call", "prompt", "resource", "progress", "cancel", "list change")
LEFT_OUT = os.environ.get("LEFT_OUT", "").split(",")
"""Features that this run's client has no way to use."""
LIMIT_S = 40
"""Each takes well under a second on an idle machine."""


class Told:
    """Per feature "ok", or what went wrong."""

    def __init__(self) -> None:
        self.features: dict[str, str] = {}

    async def tries(self, feature: str, trial: Callable[[], Awaitable[object]]) -> None:
        """One trial; it has worked where it returns."""
        if feature in LEFT_OUT:
            return
        try:
            await asyncio.wait_for(trial(), LIMIT_S)
        except Exception as error:  # noqa: BLE001 - whatever a client raises is told
            self.features[feature] = f"{type(error).__name__}: {error}"
        else:
            self.features[feature] = "ok"

    def end(self) -> None:
        print(json.dumps(self.features))
        sys.stdout.flush()


def expect(part: str, whole: object) -> None:
    """The answer's text must have this part."""
    if part not in str(whole):
        raise AssertionError(f"{part!r} is not in {str(whole)[:500]}")


async def until(what: str, holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask until it holds; the trial's own limit ends it."""
    while not await holds():
        await asyncio.sleep(0.05)
