"""What an operator sees of a running host as it goes, and ends: calls, and every change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from observant_host.host.acts import Acting

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.routing.open_calls import CallInFlight, EndedCall


class Operating(Acting):
    """The part of a Host that is watched while it works. Everything raises Unavailable where the
    host does not run."""

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
