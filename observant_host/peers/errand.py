"""One thing to be asked of a server: how long it may take, who is told, what it declares.

It is made once and handed down whole, since passing its fifteen parts through each layer would
cost more than sending it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

    from observant_host.errors import DeadlineScope, Delivery
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.notices import ProgressNote
    from observant_host.telemetry.facade import Operation, TraceContext

    OnProgress = Callable[[float, float | None, str | None], object]


class Witness:
    """What became of one call so far, for whoever routes it, however it ends.

    `attempts` counts the requests that were made for it, `era` is that of the life it last had,
    `delivery` how far the last of them got while no answer came, `progress` what its server said
    of it last.
    """

    __slots__ = ("attempts", "delivery", "era", "progress")

    def __init__(self) -> None:
        self.attempts = 0
        self.delivery: Delivery = "not_sent"
        self.era = "unknown"
        self.progress: ProgressNote | None = None

    def asked(self) -> None:
        """A request is about to be sent."""
        self.attempts += 1
        self.delivery = "sent_no_reply"


class Errand:
    """`expires` and `latest` are absolute (clock.monotonic()). With `renew_s` each progress gives
    the request that much time again, never past `latest`. `witness` hears of each request.

    `target` is a local tool or prompt name, `uri` a resource's: what an HTTP transport mirrors.
    `handlers` decide what this one request declares (None: what the life declares).
    """

    __slots__ = (
        "attempt",
        "expires",
        "handlers",
        "latest",
        "method",
        "on_progress",
        "page",
        "parent",
        "purpose",
        "renew_s",
        "round",
        "scope",
        "target",
        "uri",
        "witness",
    )

    def __init__(
        self,
        method: str,
        *,
        expires: float,
        latest: float = math.inf,
        renew_s: float | None = None,
        scope: DeadlineScope = "attempt",
        target: str | None = None,
        uri: str | None = None,
        on_progress: OnProgress | None = None,
        parent: TraceContext | None = None,
        purpose: str = "",
        attempt: int = 1,
        round: int = 0,  # noqa: A002 - the protocol's word
        page: int | None = None,
        handlers: InputHandlers | None = None,
        witness: Witness | None = None,
    ) -> None:
        self.method = method
        self.expires = expires
        self.latest = latest
        self.renew_s = renew_s
        self.scope: DeadlineScope = scope
        self.target = target
        self.uri = uri
        self.on_progress = on_progress
        self.parent = parent
        self.purpose = purpose
        self.attempt = attempt
        self.round = round
        self.page = page
        self.handlers = handlers
        self.witness = witness

    def scope_at(self, now: float) -> DeadlineScope:
        """Which deadline passes at `now`: the attempt's own, or the whole call's."""
        return "call" if self.scope == "attempt" and now >= self.latest else self.scope

    def look(self, op: Operation, result: Raw) -> None:
        """Look at the result while its operation is still open. May raise InvalidResult."""
