"""How the requests of one life are written and told: what all of them have in common, made once.

A routed call pays for its own parameters and for nothing that the call before it said as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.errors import InvalidCall
from observant_host.peers.eras import ModernEra
from observant_host.telemetry.vocabulary import Request
from observant_host.transports.base import Outbound
from observant_host.wire.templates import template

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from msgspec import Raw

    from observant_host.peers.eras import Era, Params
    from observant_host.peers.errand import Errand
    from observant_host.peers.headers import Headers
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.telemetry.facade import TraceContext
    from observant_host.wire.envelope import Stamp
    from observant_host.wire.templates import Template

UNWRITABLE: Final = (TypeError, ValueError, RecursionError, msgspec.MsgspecError)
"""What is raised of a value that is no JSON."""
MAX_FACTS: Final = 4096
"""Facts that are kept, one for each tool or prompt that was called: far above any server's list."""


class Writing:
    """Of one life, from `settle` on. `declared` is what the life declares, `headers` what its HTTP
    requests say in theirs (None: it has no headers)."""

    def __init__(
        self, peer: str, *, generation: int, declared: Mapping[str, Any], headers: Headers | None
    ) -> None:
        self._peer = peer
        self._generation = generation
        self._declared = declared
        self._headers = headers
        self._stamp: Stamp | None = None
        self._propagates = False
        self._facts: dict[tuple[str, str | None, str], Request] = {}

    def settle(self, era: Era) -> None:
        """The era is decided."""
        if isinstance(era, ModernEra):
            self._stamp, self._propagates = era.stamp(self._declared), era.propagate

    def fact(self, era: Era, errand: Errand) -> Request:
        """What telemetry knows of a request that begins, but for its id and its time."""
        plain = (
            errand.attempt == 1 and not errand.round and errand.uri is None and errand.page is None
        )
        key = (errand.method, errand.target, errand.purpose)
        if plain and (known := self._facts.get(key)) is not None:
            return known
        fact = Request(
            peer=self._peer,
            method=errand.method,
            era=era.name,
            generation=self._generation,
            version=era.version,
            target=errand.target,
            uri=errand.uri,
            attempt=errand.attempt,
            round=errand.round,
            purpose=errand.purpose,
            page=errand.page,
        )
        if plain and len(self._facts) < MAX_FACTS:
            self._facts[key] = fact
        return fact

    def template(
        self, era: Era, method: str, name: str, *, handlers: InputHandlers | None, numbered: bool
    ) -> Template | None:
        """What writes this method's requests for what is called `name`, by callers who ask for
        nothing special and have these handlers (None: the life's own). None also where there is no
        writing them: `outbound` says why."""
        stamp = self._stamp if handlers is None else None
        declared = self._declared if handlers is None else handlers.capabilities()

        def write(
            request_id: int, arguments: Raw, traceparent: str | None, token: int | None
        ) -> bytes:
            params = {"name": name, "arguments": arguments}
            if stamp is not None:
                return stamp.request(request_id, method, params, traceparent, None, token)
            if isinstance(era, ModernEra):
                written = era.stamp(declared)
                return written.request(request_id, method, params, traceparent, None, token)
            return era.request(
                request_id, method, params, capabilities=declared, trace=None, progress_token=token
            )

        try:
            return template(write, traced=self._propagates, numbered=numbered)
        except UNWRITABLE:
            return None

    def outbound(
        self, era: Era, request_id: int, errand: Errand, params: Params, trace: TraceContext
    ) -> Outbound:
        """The request as it goes to the transport. Raises InvalidCall where the caller's arguments
        are no JSON, or cannot be mirrored into headers."""
        method, handlers, stamp = errand.method, errand.handlers, self._stamp
        wanted = errand.renew_s is not None or errand.on_progress is not None
        token = request_id if wanted else None
        try:
            if stamp is None or handlers is not None:
                frame = era.request(
                    request_id,
                    method,
                    params,
                    capabilities=self._declared if handlers is None else handlers.capabilities(),
                    trace=trace,
                    progress_token=token,
                )
            else:
                told = self._propagates
                frame = stamp.request(
                    request_id,
                    method,
                    params,
                    trace.traceparent() if told else None,
                    trace.tracestate or None if told else None,
                    token,
                )
        except UNWRITABLE as error:
            raise InvalidCall(f"the arguments cannot be written as JSON: {error}") from error
        if self._headers is None:
            return Outbound(frame, method, request_id, era.version)
        return self._headers.outbound(
            era, frame, request_id=request_id, method=method, params=params
        )
