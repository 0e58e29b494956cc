"""What every running host needs, loaded with it: in the first turns of its event loop, where these
would be imported otherwise, they would hold up the servers that start.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

LATE: Final = (
    "anyio._backends._asyncio",  # the library itself looks for it at its first use
    "concurrent.futures.thread",  # so does asyncio
    "observant_host.telemetry.flight",
    "observant_host.telemetry.guard",
    "observant_host.telemetry.logs",
    "observant_host.telemetry.metrics",
    "observant_host.telemetry.spans",
)


def load() -> None:
    for name in LATE:
        import_module(name)
