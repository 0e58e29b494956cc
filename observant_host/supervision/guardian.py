"""The host's end of the guardian: the small process that ends what a killed host leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock


class Guardian:
    """Started once per host; a GroupKeeper for its transports.

    A host without a working guardian runs all the same: only a SIGKILL of it may then leave
    processes behind.
    """

    def __init__(self, *, telemetry: Telemetry, clock: Clock) -> None:
        raise NotImplementedError

    @property
    def pid(self) -> int | None:
        """None while it is not running."""
        raise NotImplementedError

    @property
    def environment(self) -> Mapping[str, str]:
        raise NotImplementedError

    async def start(self) -> None:
        """Raises SpawnFailed."""
        raise NotImplementedError

    def watch(self, pgid: int) -> None:
        raise NotImplementedError

    def forget(self, pgid: int) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        """Tell it that all is well, and reap it. Idempotent; bounded."""
        raise NotImplementedError
