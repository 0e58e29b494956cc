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

    from observant_host.errors import DeadlineScope
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.telemetry.facade import Operation, TraceContext

    OnProgress = Callable[[float, float | None, str | None], object]


class Errand:
    """`expires` and `latest` are absolute (clock.monotonic()). With `renew` each progress gives the
    request its original time again, never past `latest`.

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
        "renew",
        "round",
        "scope",
        "target",
        "uri",
    )

    def __init__(
        self,
        method: str,
        *,
        expires: float,
        latest: float = math.inf,
        renew: bool = False,
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
    ) -> None:
        self.method = method
        self.expires = expires
        self.latest = latest
        self.renew = renew
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

    def look(self, op: Operation, result: Raw) -> None:
        """Look at the result while its operation is still open. May raise InvalidResult."""
