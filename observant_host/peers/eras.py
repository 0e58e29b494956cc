"""The two shapes of speech. A settled era knows how its messages look, and nothing else.

A modern message carries version, capabilities and trace in `_meta`; a legacy message never does,
since deployed legacy servers refuse it.

Source: MCP 2026-07-28 basic/index › _meta; MCP 2025-11-25 basic/index, basic/lifecycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import Raw

from observant_host.decisions import terms
from observant_host.wire import envelope, legacy
from observant_host.wire.envelope import ClientInfo

if TYPE_CHECKING:
    from observant_host.telemetry.facade import TraceContext

Params = Mapping[str, Any] | Raw | None
BATCHING_REVISION = "2025-03-26"
FIRST_WITH_VERSION_HEADER = "2025-06-18"


class ModernEra(msgspec.Struct, frozen=True, gc=False):
    """`propagate` False: no trace keys leave (the server is not trusted with them)."""

    name: ClassVar[terms.Era] = terms.Era.MODERN
    batches: ClassVar[bool] = False
    version: str
    client_info: ClientInfo
    propagate: bool = True

    @property
    def version_header(self) -> str | None:
        """The value of MCP-Protocol-Version over HTTP: each modern message has it."""
        return self.version

    def request(
        self,
        request_id: int,
        method: str,
        params: Params,
        *,
        capabilities: Mapping[str, Any] | Raw,
        trace: TraceContext | None,
        progress_token: int | None,
    ) -> bytes:
        told = trace if self.propagate else None
        return envelope.stamp(
            request_id,
            method,
            params,
            version=self.version,
            capabilities=capabilities,
            client_info=self.client_info,
            traceparent=told.traceparent() if told is not None else None,
            tracestate=(told.tracestate or None) if told is not None else None,
            progress_token=progress_token,
        )

    def stamp(self, capabilities: Mapping[str, Any]) -> envelope.Stamp:
        """What writes the requests of a life that declares these."""
        return envelope.Stamp(
            version=self.version, capabilities=capabilities, client_info=self.client_info
        )

    def notification(self, method: str, params: Params) -> bytes:
        return envelope.stamp_notification(method, params)


class LegacyEra(msgspec.Struct, frozen=True):
    """A revision that began with `initialize`; `version` is the one that was agreed."""

    name: ClassVar[terms.Era] = terms.Era.LEGACY
    version: str

    @property
    def batches(self) -> bool:
        """Only one revision let servers send arrays."""
        return self.version == BATCHING_REVISION

    @property
    def version_header(self) -> str | None:
        """The value of MCP-Protocol-Version over HTTP; None where the revision has none.

        Source: MCP 2025-06-18 basic/transports › Protocol Version Header.
        """
        return self.version if self.version >= FIRST_WITH_VERSION_HEADER else None

    def request(
        self,
        request_id: int,
        method: str,
        params: Params,
        *,
        capabilities: Mapping[str, Any] | Raw,  # told once, by initialize
        trace: TraceContext | None,  # a legacy message carries none
        progress_token: int | None,
    ) -> bytes:
        return legacy.request(request_id, method, params, progress_token=progress_token)

    def notification(self, method: str, params: Params) -> bytes:
        return legacy.notification(method, params)


Era = ModernEra | LegacyEra
