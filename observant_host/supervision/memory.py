"""What a host remembers of its servers between runs. It refuses and alerts; it chooses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from observant_host.decisions.acts import Ruling, is_over
from observant_host.decisions.names import qualified
from observant_host.decisions.permission import CommandAllowance, Remembered
from observant_host.decisions.terms import Era
from observant_host.decisions.withheld import offered, split
from observant_host.state_files import Allowance, LastEra, Memory, Moments, ProvenModern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from observant_host.config import ServerConfig
    from observant_host.decisions.catalogue import Listing
    from observant_host.timing.clock import Clock


class HostMemory:
    """A PeerMemory over `state_files.Memory`. `changed` is called after each change, to save it."""

    def __init__(self, memory: Memory, *, clock: Clock, changed: Callable[[], None]) -> None:
        self.memory = memory
        self._clock = clock
        self._changed = changed
        self._off: dict[str, dict[str, Ruling]] = {}
        for name, ruling in memory.tools_off.items():
            server, tool = split(name)
            if tool is not None:
                self._off.setdefault(server, {})[tool] = ruling
        self._offered: dict[str, tuple[Listing, Mapping[str, Ruling], Listing]] = {}

    def recall(self, server: ServerConfig) -> Remembered:
        """Permission's view of this server."""
        given = self.memory.allowances.get(server.name)
        return Remembered(
            proven_modern=server.fingerprint in self.memory.modern,
            allowance=CommandAllowance(given.fingerprint, given.until) if given else None,
        )

    def last_era(self, server: ServerConfig) -> Era:
        """The era last chosen, in any run: the "from" of the next decision."""
        last = self.memory.eras.get(server.name)
        known = {era.value: era for era in Era}
        return known.get(last.era, Era.UNKNOWN) if last is not None else Era.UNKNOWN

    def chose(
        self, server: ServerConfig, era: Era, *, version: str | None, downgrade: bool
    ) -> None:
        self.memory.eras[server.name] = LastEra(era, version, self._now())
        if downgrade:
            self._at(server, last_downgrade=self._now())
        self._changed()

    def proved_modern(self, server: ServerConfig, *, version: str | None = None) -> None:
        if server.fingerprint in self.memory.modern:
            return
        self.memory.modern[server.fingerprint] = ProvenModern(server.name, version, self._now())
        self._changed()

    def refused(self, server: ServerConfig) -> None:
        self._at(server, last_refused=self._now())
        self._changed()

    def was_ready(self, server: ServerConfig) -> None:
        self._at(server, last_ready=self._now())
        self._changed()

    def allow(self, server: ServerConfig, *, until: float, reason: str, principal: str) -> None:
        """A person's allowance for the present fingerprint; forgets that it was modern."""
        self.memory.allowances[server.name] = Allowance(
            server.fingerprint, until, reason, principal, self._now()
        )
        self.memory.modern.pop(server.fingerprint, None)
        self._changed()

    def rule(self, server: ServerConfig, ruling: Ruling | None) -> None:
        """A person's act that stands, by the server's name; None lifts it."""
        if ruling is None:
            self.memory.acts.pop(server.name, None)
        else:
            self.memory.acts[server.name] = ruling
        self._changed()

    def ruling(self, server: ServerConfig) -> Ruling | None:
        """What stands for this server; one whose time is over is forgotten."""
        ruling = self.memory.acts.get(server.name)
        if ruling is None or not is_over(ruling, self._now()):
            return ruling
        self.rule(server, None)
        return None

    # One tool of a server

    def tools_off(self, server: str) -> Mapping[str, Ruling]:
        """By local name; another object after each change."""
        return self._off.get(server, {})

    def rule_tool(self, server: str, tool: str, ruling: Ruling | None) -> None:
        """It is off as the ruling says; None: it is on again."""
        off = {name: one for name, one in self.tools_off(server).items() if name != tool}
        self.memory.tools_off.pop(qualified(server, tool), None)
        if ruling is not None:
            off[tool] = self.memory.tools_off[qualified(server, tool)] = ruling
        self._off[server] = off
        self._changed()

    def over_by(self, now_s: float) -> list[tuple[str, str, Ruling]]:
        """Tools whose time of being off is over."""
        return [
            (server, tool, ruling)
            for server, off in self._off.items()
            for tool, ruling in off.items()
            if is_over(ruling, now_s)
        ]

    def next_over_s(self) -> float | None:
        """When the next of them is (epoch seconds), None where none ends by itself."""
        ends = (one.until for one in self.memory.tools_off.values() if one.until is not None)
        return min(ends, default=None)

    def offered(self, listing: Listing | None) -> Listing | None:
        """The listing without what is off: the same object for the same listing."""
        off = self._off.get(listing.server) if listing is not None else None
        if listing is None or not off:
            return listing
        kept = self._offered.get(listing.server)
        if kept is None or kept[0] is not listing or kept[1] is not off:
            kept = self._offered[listing.server] = listing, off, offered(listing, off)
        return kept[2]

    def moments(self, server: ServerConfig) -> Moments:
        """The persisted timestamps of this server."""
        return self.memory.moments.get(server.name, Moments())

    def _at(self, server: ServerConfig, **moments: float) -> None:
        self.memory.moments[server.name] = msgspec.structs.replace(self.moments(server), **moments)

    def _now(self) -> float:
        return self._clock.wall_ns() / 1e9
