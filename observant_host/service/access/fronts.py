"""All connections of one network listener, and what they know together: the heads that were read,
judged and answered once. See `front`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions.http_heads import Heads
from observant_host.service.access.front import Front
from observant_host.timing.tasks import Signal, wait_any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web
    from multidict import CIMultiDictProxy

    from observant_host.service.access.asked import Asked
    from observant_host.service.access.straight import Said
    from observant_host.service.callers import Caller
    from observant_host.timing.clock import Clock

    KeyOf = Callable[[CIMultiDictProxy[str]], bytes | None]
    Known = Callable[[bytes], Caller | None]
    Answer = Callable[[Asked, Caller], Awaitable[web.StreamResponse]]

MAX_BODY: Final = 64 * 1024
"""Of a request that is answered here; a larger one is aiohttp's, which reads it with bounds."""


class Fronts:
    """The connections of one listener. `known` says at once who has the token of such a key; where
    it does not, the ordinary way is gone. A connection without a request is closed after `idle_s`.
    """

    def __init__(
        self,
        server: web.Server,
        *,
        key_of: KeyOf,
        known: Known,
        answer: Answer,
        clock: Clock,
        idle_s: float,
        max_body: int = MAX_BODY,
    ) -> None:
        self.server = server
        self.key_of = key_of
        self.known = known
        self.answer = answer
        self.clock = clock
        self.idle_s = idle_s
        self.max_body = min(max_body, MAX_BODY)
        self.heads: Heads[Said] = Heads()
        self.busy: set[Front] = set()
        self.quiet = Signal()
        self.closing = False

    def __call__(self) -> Front:
        return Front(self.server(), self)

    def look(self) -> None:
        """Whether all that was begun has ended."""
        if self.closing and not self.busy:
            self.quiet.set()

    async def settle(self, within_s: float) -> None:
        """Begin no more, and wait for what was begun; then cancel what is left: of a client that
        reads nothing, the end of the connection would not be told."""
        self.closing = True
        if self.busy:
            await wait_any(self.clock, within_s, self.quiet)
        for front in self.busy:
            front.cancel()
