"""One tool of a server, switched off and on by a person: persisted, recorded, over by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions.acts import Act, sentence
from observant_host.decisions.names import qualified
from observant_host.decisions.routes import close_matches
from observant_host.errors import InvalidCall
from observant_host.telemetry.vocabulary import OperatorAct

if TYPE_CHECKING:
    from observant_host.decisions.acts import Ruling
    from observant_host.host.core import Core
    from observant_host.supervision.supervisor import PeerSupervisor
    from observant_host.timing.clock import Timer

MAX_OFF: Final = 1000
"""Tools that are off in one host: more is what a server's `tools` filter is for."""
LOOK_S: Final = 60.0
"""The longest sleep until one's time is over: the wall clock may be set meanwhile."""


def check(core: Core, peer: PeerSupervisor, tool: str, *, on: bool) -> None:
    """Raises InvalidCall for a tool that its server does not have, as far as is known."""
    server, listing = peer.server.name, peer.record.listing
    off = core.memory.tools_off(server)
    if on or tool in off or listing is None:
        known = True
    else:
        known = any(one.name == tool for one in listing.tools)
    if not known and listing is not None:
        close = close_matches(tool, [one.name for one in listing.tools])
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        raise InvalidCall(f"{server} lists no tool {tool[:128]!r}{meant}", unknown=True)
    if not on and len(core.memory.memory.tools_off) >= MAX_OFF:
        raise InvalidCall(
            f"{MAX_OFF} tools are off already; leave tools out by [servers.{server}] tools.deny"
        )


class ToolSwitches:
    """Of one running host. Each end is a timer, the soonest only."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._timer: Timer | None = None
        self._look()

    def switch(self, peer: PeerSupervisor, tool: str, ruling: Ruling | None) -> None:
        """From now on; whoever asks next gets another catalogue."""
        self._core.memory.rule_tool(peer.server.name, tool, ruling)
        self._core.changed(peer.server.name)
        self._look()

    def _look(self) -> None:
        """End what is over, and look again when the next one is."""
        core = self._core
        if core.over.is_set():
            return
        for server, tool, ruling in core.memory.over_by(core.around.now_s()):
            self._end(server, tool, ruling)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = core.memory.next_over_s()
        if at is not None:
            clock = core.plan.clock
            wait_s = min(max(0.0, at - core.around.now_s()), LOOK_S)
            self._timer = clock.call_at(clock.monotonic() + wait_s, self._look)

    def _end(self, server: str, tool: str, ruling: Ruling) -> None:
        core = self._core
        core.memory.rule_tool(server, tool, None)
        core.telemetry.count(
            OperatorAct(
                verb=Act.ENABLE,
                peer=server,
                principal="host",
                reason=f"its time is over: {sentence(ruling)}",
                detail=qualified(server, tool),
            )
        )
        core.changed(server)
