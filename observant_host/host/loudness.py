"""Another level of the log for a time, which ends by itself: nobody has to remember it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.errors import InvalidCall, Unavailable
from observant_host.service.served import LogLevelSet
from observant_host.supervision.peer_state import iso
from observant_host.telemetry.log_lines import LEVELS
from observant_host.telemetry.vocabulary import OperatorAct

if TYPE_CHECKING:
    from observant_host.host.core import Core
    from observant_host.timing.clock import Timer

VERB: Final = "log-level"
MAX_S: Final = 86_400.0
"""A day: whoever looks at something looks at it now."""


class Loudness:
    """Of one host. The configuration's level is what it goes back to, and what a restart has."""

    def __init__(self) -> None:
        self._timer: Timer | None = None

    def set(
        self, core: Core, level: str, *, for_s: float, principal: str, reason: str
    ) -> LogLevelSet:
        """Raises InvalidCall, Unavailable where the host has no log of its own."""
        log = core.telemetry.log
        if log is None:
            raise Unavailable("this host writes no log lines", fault="host")
        if level not in LEVELS:
            raise InvalidCall(f"there is no level {level!r}; there are: {', '.join(LEVELS)}")
        if not 0 < for_s <= MAX_S:
            raise InvalidCall(f"a log level stands for at most {MAX_S / 3600:g} h, then it reverts")
        until = iso(core.plan.clock.wall_ns() + round(for_s * 1e9))
        core.telemetry.count(
            OperatorAct(
                verb=VERB,
                peer="",
                principal=principal,
                reason=reason,
                detail=f"{level} until {until}",
            )
        )
        log.set_level(level)
        self._revert_later(core, for_s)
        configured = core.plan.config.telemetry.log_level
        return LogLevelSet(level=level, until=until, configured=configured)

    def follow(self, core: Core) -> None:
        """Another configuration is in force. A level that a person set stands until its time."""
        if self._timer is None and core.telemetry.log is not None:
            core.telemetry.log.set_level(core.plan.config.telemetry.log_level)

    def _revert_later(self, core: Core, for_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()

        def revert() -> None:
            self._timer = None
            configured = core.plan.config.telemetry.log_level
            if core.over.is_set() or core.telemetry.log is None:
                return
            core.telemetry.log.set_level(configured)
            core.telemetry.count(
                OperatorAct(
                    verb=VERB,
                    peer="",
                    principal="host",
                    reason="its time is over",
                    detail=configured,
                )
            )

        clock = core.plan.clock
        self._timer = clock.call_at(clock.monotonic() + for_s, revert)
