"""The host as its northbound service sees it (the service sits below the host in the house)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Unpack

    from msgspec import Raw

    from observant_host.config import HostConfig
    from observant_host.decisions.catalogue import Catalogue, Listing
    from observant_host.incidents.purge import Purged
    from observant_host.peers.told import LogMessage
    from observant_host.routing.asked import CallOptions
    from observant_host.routing.call_result import CallResult
    from observant_host.routing.open_calls import CallInFlight, EndedCall
    from observant_host.supervision.examine import Examination
    from observant_host.supervision.peer_state import ServerView
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.tasks import Signal


class LogLevelSet(msgspec.Struct, frozen=True, kw_only=True):
    """`level` is in force until `until` (ISO 8601), then `configured` again."""

    level: str
    until: str
    configured: str


class CaptureBegun(msgspec.Struct, frozen=True, kw_only=True):
    """Frames of `server` go to `file` until `until` (ISO 8601), or until it has `max_bytes`.
    `arguments`: with arguments and results."""

    server: str
    file: str
    until: str
    max_bytes: int
    arguments: bool


class Reloaded(Protocol):
    """What came of a reload."""

    def to_dict(self) -> dict[str, Any]: ...


class Served(Protocol):
    """Every method raises HostError with a sentence; see `host.Host` for each."""

    config: HostConfig

    @property
    def published(self) -> bool: ...

    @property
    def draining(self) -> bool: ...

    @property
    def telemetry(self) -> Telemetry: ...

    @property
    def listings(self) -> Mapping[str, Listing | None]: ...

    @property
    def servers(self) -> Mapping[str, ServerView]: ...

    @property
    def catalogue(self) -> Catalogue: ...

    async def fresh_catalogue(self, *, within_s: float = 5.0) -> Catalogue: ...

    @property
    def ready(self) -> Signal:
        """Set once start-up is over."""

    @property
    def over(self) -> Signal:
        """Set once everything is ended, for whatever reason."""

    @property
    def idle(self) -> Signal:
        """Set while calls are refused and none is open."""

    def leave(self) -> None: ...

    def refuse_calls(self) -> None: ...

    async def open(self) -> None: ...

    async def settled(self) -> None: ...

    async def close(self) -> None: ...

    def hurry(self) -> None: ...

    async def metrics(self, accept: str | None) -> tuple[bytes, str]: ...

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | Raw | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult: ...

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | Raw | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult: ...

    async def read_resource(
        self, uri: str, *, server: str | None = None, **options: Unpack[CallOptions]
    ) -> CallResult: ...

    async def complete(
        self,
        ref: Mapping[str, Any],
        argument: Mapping[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
        server: str | None = None,
        **options: Unpack[CallOptions],
    ) -> CallResult: ...

    def may_ask_during_calls(self, server: str) -> bool: ...

    async def subscribe_resource(
        self, uri: str, callback: Callable[[str], object], *, server: str | None = None
    ) -> None: ...

    async def unsubscribe_resource(
        self,
        uri: str,
        callback: Callable[[str], object] | None = None,
        *,
        server: str | None = None,
    ) -> None: ...

    def follow_catalogue(self, told: Callable[[Catalogue], object]) -> Callable[[], None]: ...

    def follow_announced(
        self, told: Callable[[tuple[str, frozenset[str]]], object]
    ) -> Callable[[], None]: ...

    def follow_logs(self, told: Callable[[LogMessage], object]) -> Callable[[], None]: ...

    def follow_servers(self, told: Callable[[str], object]) -> Callable[[], None]: ...

    def follow_decisions(self, told: Callable[[dict[str, Any]], object]) -> Callable[[], None]: ...

    def follow_failed_calls(self, told: Callable[[EndedCall], object]) -> Callable[[], None]: ...

    def calls_in_flight(self) -> list[CallInFlight]: ...

    def recent_calls(self) -> list[EndedCall]: ...

    async def switch_tool(
        self,
        name: str,
        tool: str,
        *,
        on: bool,
        until: float | None = None,
        for_s: float | None = None,
        principal: str = "library",
        reason: str = "",
    ) -> ServerView: ...

    def set_log_level(
        self, level: str, *, for_s: float, principal: str = "library", reason: str = ""
    ) -> LogLevelSet: ...

    async def capture(
        self,
        name: str,
        *,
        for_s: float,
        arguments: bool = False,
        principal: str = "library",
        reason: str = "",
    ) -> CaptureBegun: ...

    async def cancel_call(
        self, call_id: str, *, principal: str = "library", reason: str = ""
    ) -> CallInFlight: ...

    async def act(
        self,
        name: str,
        act: str,
        *,
        until: float | None = None,
        for_s: float | None = None,
        principal: str = "library",
        reason: str = "",
    ) -> ServerView: ...

    async def allow(
        self,
        name: str,
        *,
        until: float | None = None,
        for_s: float | None = None,
        reason: str = "",
        principal: str = "library",
    ) -> ServerView: ...

    async def examine(
        self, name: str, *, principal: str = "library", reason: str = ""
    ) -> Examination: ...

    async def reload(
        self, *, dry_run: bool = False, principal: str = "library", reason: str = ""
    ) -> Reloaded: ...

    def log_tail(self) -> Sequence[str]: ...

    def masked(self, text: str) -> str: ...

    def recent_decisions(self) -> list[dict[str, Any]]: ...

    async def explain(self, name: str, *, since_ns: int | None = None) -> list[dict[str, Any]]: ...

    async def incidents(
        self,
        *,
        server: str | None = None,
        since_ns: int | None = None,
        until_ns: int | None = None,
    ) -> dict[str, Any]: ...

    async def purge_record(
        self,
        *,
        before_ns: int | None,
        server: str | None,
        dry_run: bool = False,
        principal: str = "library",
        reason: str = "",
    ) -> Purged: ...
