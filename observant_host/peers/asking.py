"""Everything that one server wants to know at once, asked of whoever can answer.

All is checked before anybody is asked: one wish that nobody here can fulfil, and no person is
prompted at all. A person's time counts against the call's, never against the server's.

Source: MCP 2026-07-28 basic/patterns/mrtr › Client Requirements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Raw

from observant_host.errors import CallTimeout, InputRefused, InvalidResult
from observant_host.peers.input_answers import UnfitAnswer, ask
from observant_host.peers.input_handlers import (
    KINDS,
    InputDeclined,
    InputRequest,
    forbidden,
)
from observant_host.telemetry.vocabulary import RetryScheduled
from observant_host.timing.deadline import DeadlinePassed, deadline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from observant_host.peers.input_handlers import InputHandler, InputHandlers
    from observant_host.telemetry.facade import Telemetry, TraceContext
    from observant_host.timing.clock import Clock
    from observant_host.wire.messages import EmbeddedRequest

T = TypeVar("T")

MAX_INPUTS: Final = 16
"""Of one round: more prompts at once than anybody reads."""


class Asking:
    """For one call of `method`, which must be over by `latest` (monotonic seconds)."""

    def __init__(
        self,
        *,
        server: str,
        method: str,
        handlers: InputHandlers,
        latest: float,
        telemetry: Telemetry,
        clock: Clock,
        parent: TraceContext | None = None,
    ) -> None:
        self.server = server
        self.clock = clock
        self.latest = latest
        self._method = method
        self._handlers = handlers
        self._telemetry = telemetry
        self._parent = parent

    async def answers(self, requests: Mapping[str, EmbeddedRequest]) -> dict[str, Any]:
        """One answer for each key. Raises InputRefused where nobody can or will, InvalidResult
        where there are too many, CallTimeout when the call's time is over meanwhile."""
        asked = self.check(requests)
        return await self.within_time(self._all(asked)) if asked else {}

    def check(
        self, requests: Mapping[str, EmbeddedRequest]
    ) -> dict[str, tuple[InputRequest, InputHandler]]:
        """Who is to answer each. Raises as `answers` does before anybody is asked."""
        if len(requests) > MAX_INPUTS:
            raise InvalidResult(f"{self.server} asked for {len(requests)} inputs at once")
        return {key: self._checked(embedded) for key, embedded in requests.items()}

    async def pause(self, seconds: float) -> None:
        """Wait, within the call's time."""
        if seconds > 0:
            await self.within_time(self.clock.sleep(seconds))

    def scheduled(self, *, attempt: int, delay_s: float = 0.0) -> None:
        """Tell that the call is about to be sent once more."""
        self._telemetry.count(
            RetryScheduled(
                peer=self.server,
                reason="input_round",
                attempt=attempt,
                delay_ms=delay_s * 1000,
            ),
            parent=self._parent,
        )

    async def within_time(self, work: Awaitable[T]) -> T:
        """The work's value. Raises CallTimeout when the call's time is over before."""
        began = self.clock.monotonic()
        try:
            async with deadline(
                max(0.0, self.latest - self.clock.monotonic()),
                scope="call",
                peer=self.server,
                telemetry=self._telemetry,
                method=self._method,
                clock=self.clock,
            ):
                return await work
        except DeadlinePassed as passed:
            raise CallTimeout(
                f"the call's time was over while {self.server} waited for input",
                scope="call",
                delivery="replied",
                fault="caller",
            ) from passed
        finally:
            self._telemetry.spent_elsewhere(self.clock.monotonic() - began)

    async def _all(self, asked: Mapping[str, tuple[InputRequest, InputHandler]]) -> dict[str, Any]:
        return {key: await self._ask(request, by) for key, (request, by) in asked.items()}

    def _checked(self, embedded: EmbeddedRequest) -> tuple[InputRequest, InputHandler]:
        kind = KINDS.get(embedded.method)
        handler = self._handlers.of(kind) if kind is not None else None
        if kind is None or handler is None:
            raise self._refused(
                f"it asked for {embedded.method}, which "
                + (
                    "nobody here answers (give the host a handler for it)"
                    if self._handlers.offered is None
                    else "its caller did not declare"
                )
            )
        request = InputRequest(
            server=self.server,
            kind=kind,
            method=embedded.method,
            params=embedded.params if embedded.params is not None else Raw(b"{}"),
        )
        problem = forbidden(request, self._handlers)
        if problem is not None:
            raise self._refused(problem)
        return request, handler

    async def _ask(self, request: InputRequest, handler: InputHandler) -> Mapping[str, Any] | Raw:
        try:
            return await ask(request, handler, as_it_came=self._handlers.offered is not None)
        except InputDeclined as declined:
            raise InputRefused(
                f"{self.server} asked for {request.method} and was refused",
                delivery="replied",
                fault="caller",
            ) from declined
        except UnfitAnswer as unfit:
            raise InputRefused(
                f"the handler's answer to {request.method} was not sent: {unfit}",
                delivery="replied",
                fault="host",
            ) from unfit
        except Exception as error:
            raise InputRefused(
                f"the handler for {request.method} failed: {type(error).__name__}",
                delivery="replied",
                fault="host",
            ) from error

    def _refused(self, why: str) -> InputRefused:
        return InputRefused(
            f"{self.server} needs input to answer this call: {why}",
            delivery="replied",
            fault="peer",
        )
