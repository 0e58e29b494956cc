"""Following resources of a legacy server: one request each, again in each life and session.

Source: MCP 2025-11-25 server/resources › Subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from observant_host.decisions import backoff
from observant_host.decisions.subscription import INITIAL_S, MAX_S, announces
from observant_host.errors import CallError, RpcError
from observant_host.timing.tasks import Signal, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.peers.life import Life
    from observant_host.peers.wishes import Wishes

NOT_FOLLOWED: Final = "its server does not let resources be followed (no resources.subscribe)"


class LegacyFollowing:
    """Of one life. What failed without an answer is asked again after pauses; a refusal stands
    until the next session."""

    def __init__(self, life: Life, *, wishes: Wishes, on_updated: Callable[[str], None]) -> None:
        self._life = life
        self._wishes = wishes
        self._on_updated = on_updated
        self._asked: frozenset[str] = frozenset()
        self._failures = 0
        self.renewed = Signal()
        life.subscriptions.on_reopened = self._take_all_as_changed

    async def run(self) -> None:
        """Until the life is over."""
        life = self._life
        if not announces(life.capabilities, "resources", "subscribe"):
            await self._refuse_all()
            return
        while life.end is None and not life.subscriptions.closed:
            self._wishes.changed.clear()
            if self.renewed.is_set():
                self.renewed.clear()
                self._asked = frozenset()
            pause = await self._ask_all()
            await wait_any(life.clock, pause, self._wishes.changed, self.renewed, life.end_signal)

    def _take_all_as_changed(self) -> None:
        """Its stream was lost for a while, and nothing is said again."""
        life = self._life
        kinds: tuple[Literal["tools", "prompts", "resources"], ...]
        kinds = ("tools", "prompts", "resources")
        for kind in kinds:
            if announces(life.capabilities, kind, "listChanged"):
                life.listener.list_changed(kind)
        for uri in sorted(self._asked):
            self._on_updated(uri)

    async def _refuse_all(self) -> None:
        while self._life.end is None and not self._life.subscriptions.closed:
            self._wishes.changed.clear()
            self._wishes.refused(self._wishes.uris, NOT_FOLLOWED)
            await wait_any(self._life.clock, None, self._wishes.changed, self._life.end_signal)

    async def _ask_all(self) -> float | None:
        """Seconds after which to ask again for what got no answer; None where all got one."""
        wished, unanswered = set(self._wishes.uris), False
        for uri in sorted(self._asked - wished):
            await self._ask("resources/unsubscribe", uri)
            self._asked -= {uri}
        for uri in sorted(wished - self._asked):
            if await self._subscribed(uri):
                self._asked |= {uri}
            else:
                unanswered = True
        self._failures = self._failures + 1 if unanswered else 0
        if not unanswered:
            return None
        return backoff.ceiling(self._failures, initial_s=INITIAL_S, maximum_s=MAX_S)

    async def _subscribed(self, uri: str) -> bool:
        """Whether that was answered, by a result or a refusal."""
        error = await self._ask("resources/subscribe", uri)
        if error is None:
            if self._wishes.met((uri,)):  # in a life or session before: what happened since?
                self._on_updated(uri)
            return True
        if self._life.end is None:
            self._wishes.refused((uri,), str(error))
        return isinstance(error, RpcError)

    async def _ask(self, method: str, uri: str) -> CallError | None:
        life = self._life
        params: dict[str, Any] = {"uri": uri}
        expires = life.clock.monotonic() + life.server.timing.ack_timeout_s
        try:
            await life.request(method, params, expires=expires, uri=uri, scope="ack")
        except CallError as error:
            return error
        return None
