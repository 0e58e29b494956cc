"""What a caller gets: the server's bytes, and a view of them that is decoded on first use."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from observant_host.errors import CallError, Delivery, Fault, Outcome


class CallResult:
    """One answered call. `raw` is the result object as the server sent it.

    `outcome` is "ok" or "tool_error" (`is_error`). `duration_ms` is the caller's whole wait,
    `trace_id` 32 hex digits.
    """

    outcome: Outcome
    delivery: Delivery
    fault: Fault

    def __init__(
        self,
        raw: Raw,
        *,
        name: str,
        server: str,
        local_name: str,
        is_error: bool = False,
        attempts: int = 1,
        era: str = "unknown",
        duration_ms: float = 0.0,
        trace_id: str | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def raw(self) -> bytes: ...

    @property
    def data(self) -> dict[str, Any]:
        """The whole result object, decoded."""
        raise NotImplementedError

    @property
    def content(self) -> list[Any]:
        """The `content` blocks as they came; [] where there are none."""
        raise NotImplementedError

    @property
    def has_structured_content(self) -> bool:
        raise NotImplementedError

    @property
    def structured_content(self) -> Any:
        """`structuredContent`, any JSON value; None where it is null or absent."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The text blocks of `content`, joined by newlines."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """The object of `call --json`; encode with msgspec, the result goes out untouched."""
        raise NotImplementedError


def error_json(error: CallError, *, name: str) -> dict[str, Any]:
    """The object of `call --json` for a call that raised."""
    raise NotImplementedError


def cancelled_json(*, name: str) -> dict[str, Any]:
    """The object of `call --json` for a call that was cancelled."""
    raise NotImplementedError
