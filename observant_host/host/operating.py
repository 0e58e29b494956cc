"""What an operator sees of a running host as it goes, and ends: calls, and every change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from observant_host.decisions.acts import Act, Ruling
from observant_host.decisions.names import qualified
from observant_host.errors import InvalidCall
from observant_host.host.acts import MAX_REASON, Acting, not_kept
from observant_host.host.captures import Captures
from observant_host.host.tool_switches import ToolSwitches, check
from observant_host.supervision.peer_state import iso

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.host.core import Core
    from observant_host.routing.open_calls import CallInFlight, EndedCall
    from observant_host.service.served import CaptureBegun, LogLevelSet
    from observant_host.supervision.peer_state import ServerView


class Operating(Acting):
    """The part of a Host that is watched while it works. Everything raises Unavailable where the
    host does not run."""

    def __init__(self) -> None:
        super().__init__()
        self._captures = Captures()
        self._switches: ToolSwitches | None = None

    def _begin_operating(self, core: Core) -> None:
        """Once the host has opened."""
        self._switches = ToolSwitches(core)

    async def _end_operating(self) -> None:
        """Before the host closes."""
        if self._core is not None and self._core.opened.is_set():
            await self._captures.close(self._core)

    async def capture(
        self,
        name: str,
        *,
        for_s: float,
        arguments: bool = False,
        principal: str = "library",
        reason: str = "",
    ) -> CaptureBegun:
        """Write every frame of one server, both ways, to a private file below `state_dir`, from the
        next one on, over its restarts, for at most an hour and 16 MiB; a recorded act.

        Contents are left out unless `arguments`; secrets are masked always. A restart of the host
        ends it. Raises InvalidCall, Unavailable, HostError where the disk refuses.
        """
        peer, core = self._known_peer(name), self._running()
        folder = self._captures.folder_of(core, name, for_s)
        begun = await self._captures.begin(
            core, peer, folder=folder, for_s=for_s, arguments=arguments
        )
        contents = "with" if arguments else "without"
        detail = f"{begun.file} until {begun.until}, {contents} arguments and results"
        self._record("capture", name, principal=principal, reason=reason, detail=detail)
        return begun

    async def switch_tool(
        self,
        name: str,
        tool: str,
        *,
        on: bool,
        until: float | None = None,
        for_s: float | None = None,
        principal: str = "library",
        reason: str = "",
    ) -> ServerView:
        """One tool of a server, by its local name, off or on again; a recorded act.

        While it is off it is excluded as "denied", and calls to it are refused. `until` (epoch
        seconds) or `for_s` as for `act`. It is on disk before it is in force, and survives a
        restart of the host. Raises InvalidCall, HostError where the disk refused it.
        """
        peer, core = self._known_peer(name), self._running()
        ends = None if on else self._ends(until, for_s)
        now_s = core.around.now_s()
        if ends is not None and not ends > now_s:
            raise InvalidCall("the time until which that should stand is over already")
        check(core, peer, tool, on=on)
        verb = Act.ENABLE if on else Act.DISABLE
        told = "" if ends is None else f" until {iso(int(ends * 1e9))}"
        detail = f"the tool {qualified(name, tool)}{told}"
        self._record(verb, name, principal=principal, reason=reason, detail=detail)
        ruling = Ruling(
            act="disable",
            until=ends,
            principal=principal,
            reason=reason[:MAX_REASON],
            time=now_s,
        )
        if self._switches is not None:
            self._switches.switch(peer, tool, None if on else ruling)
        if not await core.keep_memory():
            raise not_kept(f"{qualified(name, tool)} was {verb}d")
        return peer.record.view()

    def set_log_level(
        self, level: str, *, for_s: float, principal: str = "library", reason: str = ""
    ) -> LogLevelSet:
        """Another level of the log, for at most a day; then the configuration's again, as after a
        restart. A recorded act. Raises InvalidCall."""
        return self._loudness.set(
            self._running(), level, for_s=for_s, principal=principal, reason=reason
        )

    def calls_in_flight(self) -> list[CallInFlight]:
        """Oldest first."""
        return self._running().router.calls.in_flight()

    def recent_calls(self) -> list[EndedCall]:
        """The last calls that have ended, newest first."""
        return self._running().router.calls.recent()

    async def cancel_call(
        self, call_id: str, *, principal: str = "library", reason: str = ""
    ) -> CallInFlight:
        """End one call, southbound too; a recorded act. Its caller gets a CallCancelled.

        Returns what it was. Raises InvalidCall where no call of this id is open.
        """
        why = f"cancelled by {principal}" + (f": {reason}" if reason else "")
        call = self._running().router.calls.cancel(call_id, why)
        self._record(
            "cancel",
            call.server,
            principal=principal,
            reason=reason,
            detail=f"call {call.id} of {call.name or call.method}, {call.state}",
        )
        return call

    def masked(self, text: str) -> str:
        """A text without the configured secrets, for whoever shows it to a person."""
        return self._masker.text(text)

    # Following: `told` is called on the loop and must neither block nor raise; each returns what
    # ends it

    def follow_servers(self, told: Callable[[str], object]) -> Callable[[], None]:
        """`told(name)` whenever a server's view may be another one, or it is gone."""
        return self._running().servers.add(told)

    def follow_decisions(self, told: Callable[[dict[str, Any]], object]) -> Callable[[], None]:
        """`told(decision)` for each, in the shape of `recent_decisions`."""
        flight = self._running().telemetry.flight
        return flight.follow(told) if flight is not None else _nothing

    def follow_failed_calls(self, told: Callable[[EndedCall], object]) -> Callable[[], None]:
        """`told(call)` for each call that did not end "ok"."""
        followers = self._running().router.calls.followers
        followers.add(told)
        return lambda: followers.discard(told)


def _nothing() -> None:
    """Nothing is followed."""
