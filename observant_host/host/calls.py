"""Calls through a host: admitted while it runs and is not draining, counted while they are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from observant_host.errors import Unavailable
from observant_host.telemetry.vocabulary import HostLifecycle
from observant_host.timing.tasks import Signal
from observant_host.wire.tasks import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from msgspec import Raw

    from observant_host.host.core import Core
    from observant_host.routing.asked import CallOptions
    from observant_host.routing.call_result import CallResult
    from observant_host.routing.router import Router


class Calls:
    """The calling half of a Host. Every call raises errors.CallError, or CancelledError as it
    comes; the keywords are those of `routing.asked.CallOptions`.
    """

    def __init__(self) -> None:
        self._core: Core | None = None
        self._leaving = False
        self._refusing = False
        self._idle = Signal()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | Raw | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult:
        """Call a tool by its canonical, api or qualified name."""
        router = self._admit()
        if not options:  # to hand on none of them costs as much as some would
            return await router.call_tool(name, arguments)
        return await router.call_tool(name, arguments, **options)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | Raw | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult:
        """A prompt by its canonical, api or qualified name."""
        return await self._admit().get_prompt(name, arguments, **options)

    async def read_resource(
        self, uri: str, *, server: str | None = None, **options: Unpack[CallOptions]
    ) -> CallResult:
        """A resource from its owner (who lists it, or a template that it fits), or from `server`.

        `attempts` is 0 where it was kept from an earlier read, as long as its server said.
        """
        return await self._admit().read_resource(uri, server=server, **options)

    async def complete(
        self,
        ref: Mapping[str, Any],
        argument: Mapping[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
        server: str | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult:
        """Completion of a prompt's or template's argument, where its server announced it.

        `ref` is {"type": "ref/prompt", "name": …} or {"type": "ref/resource", "uri": a template's};
        `context` is left out where the server's revision does not know it.
        """
        return await self._admit().complete(
            ref, argument, context=context, server=server, **options
        )

    def may_ask_during_calls(self, server: str) -> bool:
        """Whether this server can ask for input while a call is open: one of an older revision,
        one that may have a task for the call, or one of which nothing is known now."""
        peer = self._core.fleet.get(server) if self._core is not None else None
        life = peer.peer.life if peer is not None else None
        if peer is None or life is None or life.era is None:
            return True
        return life.era.name != "modern" or EXTENSION in peer.server.extensions

    def _admit(self) -> Router:
        core = self._core
        if self._refusing or core is None or not core.opened.raised or core.over.raised:
            raise Unavailable(
                "the host is draining and takes no new calls"
                if self._refusing
                else "the host does not run; use it inside `async with`",
                fault="host",
            )
        return core.router

    def _running(self) -> Core:
        if self._core is None or not self._core.opened.is_set():
            raise Unavailable("the host does not run; use it inside `async with`", fault="host")
        return self._core

    @property
    def open_calls(self) -> int:
        """How many calls are open now."""
        return len(self._core.router.calls) if self._core is not None else 0

    # Draining

    def leave(self) -> None:
        """Say to load balancers that no more should come; calls are still taken."""
        core = self._core
        if not self._leaving and core is not None and core.opened.is_set():
            detail = f"{self.open_calls} open calls"
            core.telemetry.count(HostLifecycle(what="draining", detail=detail))
        self._leaving = True

    def refuse_calls(self) -> None:
        """Take no new calls; `idle` is set once the open ones have ended."""
        self._leaving = self._refusing = True
        if self._core is not None:
            self._core.router.calls.nobody = self._idle.set
        if not self.open_calls:
            self._idle.set()

    @property
    def idle(self) -> Signal:
        """Set while calls are refused and none is open."""
        return self._idle

    @property
    def draining(self) -> bool:
        return self._leaving
