"""Whether one call is sent again, and the wait before that: reported, bounded, and budgeted.

What is safe is decided in `decisions.retry_safety`; here is what it costs. A wait for a server
that went, or that wants to be left alone, is the server's time and not ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.decisions import retry_safety
from observant_host.decisions.retry_safety import RULES, Denied, RetryDenial
from observant_host.errors import CallTimeout, NotAnswering, RateLimited, Unavailable
from observant_host.telemetry.vocabulary import DeadlineExpired, RetryDenied, RetryScheduled

if TYPE_CHECKING:
    from observant_host.decisions.retry_safety import Allowed, RetryReason
    from observant_host.errors import CallError
    from observant_host.peers.errand import Witness
    from observant_host.routing.routed_peer import RoutedPeer
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock


class Again:
    """Of one call to one server. `harmless`: it may be executed twice. The call began at `began`
    and must be over `until`, both monotonic."""

    def __init__(
        self,
        peer: RoutedPeer,
        *,
        method: str,
        began: float,
        until: float,
        harmless: bool,
        witness: Witness,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self._peer = peer
        self._method = method
        self._began = began
        self._until = until
        self._harmless = harmless
        self._witness = witness
        self._telemetry = telemetry
        self._clock = clock

    async def after(self, error: CallError, *, repeats: bool) -> bool:
        """Whether the call goes (again) to the server after this error, once its time has come.

        `repeats` False: it never left our own line. Raises CallTimeout (scope "connect") where its
        time is over while the server is waited for.
        """
        loss = _loss_of(error)
        if loss is None:
            return False
        wished_s = error.retry_after_s if isinstance(error, Unavailable) else None
        delay_s = retry_safety.delay_s(loss, retry_after_s=wished_s, routable=self._peer.routable)
        began = self._clock.monotonic()
        verdict = self._decide(loss, repeats=repeats, delay_s=delay_s)
        waits = not isinstance(verdict, Denied)
        if waits:
            if repeats and RULES[loss].counted:
                self._peer.retries.take(began)
            verdict = await self._wait(loss, delay_s)
        waited_s = self._clock.monotonic() - began
        self._telemetry.spent_elsewhere(waited_s)
        if isinstance(verdict, Denied):
            self._denied(verdict.reason, repeats=repeats)
            if verdict.reason is RetryDenial.DEADLINE and waits:
                raise self._over(error) from error
            return False
        self._telemetry.count(
            RetryScheduled(
                peer=self._peer.server.name,
                reason=loss,
                attempt=self._witness.attempts + 1,
                delay_ms=waited_s * 1e3,
            )
        )
        return True

    async def _wait(self, loss: RetryReason, delay_s: float) -> Allowed | Denied:
        """For the time that must pass, and for the server to be back."""
        if delay_s > 0:
            await self._clock.sleep(delay_s)
        routable = self._peer.routable or await self._peer.wake(self._until)
        return self._decide(loss, repeats=False, routable=routable)  # its budget is spent by now

    def _decide(
        self, loss: RetryReason, *, repeats: bool, delay_s: float = 0.0, routable: bool = True
    ) -> Allowed | Denied:
        now = self._clock.monotonic()
        return retry_safety.decide(
            loss,
            policy=self._peer.server.retry_calls,
            harmless_twice=self._harmless,
            attempts=self._witness.attempts,
            remaining_s=self._until - now,
            delay_s=delay_s,
            routable=routable,
            repeats=repeats,
            affordable=self._peer.retries.wait_s(now) == 0.0,
        )

    def _denied(self, reason: RetryDenial, *, repeats: bool) -> None:
        """That a call found nobody in the first place is its outcome, and no denied repetition."""
        if repeats:
            self._telemetry.count(RetryDenied(peer=self._peer.server.name, reason=reason))

    def _over(self, error: CallError) -> CallTimeout:
        elapsed_s = self._clock.monotonic() - self._began
        self._telemetry.count(
            DeadlineExpired(
                peer=self._peer.server.name,
                scope="connect",
                budget_ms=(self._until - self._began) * 1e3,
                elapsed_ms=elapsed_s * 1e3,
                method=self._method,
            )
        )
        return CallTimeout(
            f"{self._peer.server.name} was not back within the call's "
            f"{self._until - self._began:.3g} s: {error}",
            scope="connect",
            delivery=error.delivery,
            fault="peer",
        )


def _loss_of(error: CallError) -> RetryReason | None:
    if error.begun or isinstance(error, NotAnswering):
        return None
    return retry_safety.loss_of(
        error.outcome,
        delivery=error.delivery,
        fault=error.fault,
        rate_limited=isinstance(error, RateLimited),
    )
