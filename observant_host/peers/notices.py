"""What a server tells without being asked: progress to its call, changes to the listener.

Everything else is dropped and counted. Nothing here may raise or wait: it runs in the reader.

Source: MCP 2026-07-28 basic/patterns/progress, server/utilities/logging.
"""

from __future__ import annotations

import inspect
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Raw

from observant_host.decisions.asking import LOG_LEVELS
from observant_host.telemetry.propagation import Link
from observant_host.telemetry.vocabulary import ServerMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.telemetry.facade import Telemetry, TraceContext
    from observant_host.timing.clock import Clock
    from observant_host.wire.jsonrpc import Notification

ListKind = Literal["tools", "prompts", "resources"]
OnProgress = "Callable[[float, float | None, str | None], object]"

LIST_CHANGED: Final[dict[str, ListKind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}

STREAMED: Final = frozenset(
    {
        *LIST_CHANGED,
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
        "notifications/cancelled",
    }
)
"""What a modern server may only say on a stream that was asked for.

Source: MCP 2026-07-28 server/utilities/subscriptions › Receiving Notifications.
"""

TOLD_PER_SECOND: Final = 10
"""Notifications of one method of one server that are told further: neither 20,000 log messages nor
500 changed lists in one burst may become a flood of our own. Each still has its effect."""


ELICITED: Final = "notifications/elicitation/complete"
MAX_LOGGER_CHARS: Final = 256
"""Of the name a server gives its logger: it is shown, and never a label."""


class ProgressNote(msgspec.Struct, frozen=True):
    """`token` as it came: its JSON type is significant."""

    token: Any
    progress: float
    total: float | None
    message: str | None


class LogNote(msgspec.Struct, frozen=True):
    """A log message: `level` is one of the protocol's, else ""; `data` any JSON value."""

    level: str
    logger: str | None
    data: Raw


class _LogFields(msgspec.Struct):
    level: Any = None
    logger: Any = None
    data: Raw = Raw(b"null")


_log_fields: Final = msgspec.json.Decoder(_LogFields).decode


def parse_log(params: Raw | None) -> LogNote:
    """Lenient: a message that is none is an empty one."""
    try:
        told = _log_fields(params if params is not None else b"{}")
    except (msgspec.MsgspecError, RecursionError):
        told = _LogFields()
    return LogNote(
        level=told.level if told.level in LOG_LEVELS else "",
        logger=told.logger[:MAX_LOGGER_CHARS] if isinstance(told.logger, str) else None,
        data=Raw(bytes(told.data)),
    )


def parse_progress(params: Raw | None) -> ProgressNote | None:
    """None where it is no usable progress."""
    told = _decoded(params)
    progress, total, message = told.get("progress"), told.get("total"), told.get("message")
    if progress is None or not _is_number(progress):
        return None
    return ProgressNote(
        token=told.get("progressToken"),
        progress=progress,
        total=total if _is_number(total) else None,
        message=message if isinstance(message, str) else None,
    )


class Notices:
    """The notifications of one life.

    `on_progress` gives the note to its call and says whether there was one; `on_cancelled` is a
    legacy server giving up a request of its own. `admits` returns the stream on which a modern one
    of STREAMED came, None where it is not to be acted upon, and itself takes what concerns the
    streams. Whoever wants to hear of updated resources or of log messages sets `on_updated` and
    `on_log`.
    """

    def __init__(
        self,
        server: str,
        *,
        telemetry: Telemetry,
        clock: Clock,
        drop: Callable[[str], None],
        admits: Callable[[Notification], TraceContext | None],
        on_progress: Callable[[ProgressNote], bool],
        on_list_changed: Callable[[ListKind, TraceContext | None], None],
        on_cancelled: Callable[[Raw | None], None],
    ) -> None:
        self._server = server
        self._telemetry = telemetry
        self._clock = clock
        self._drop = drop
        self._admits = admits
        self._on_progress = on_progress
        self._on_list_changed = on_list_changed
        self._on_cancelled = on_cancelled
        self.on_updated: Callable[[str], None] | None = None
        self.on_log: Callable[[LogNote], None] | None = None
        self._second = 0.0
        self._told: Counter[str] = Counter()

    def received(self, note: Notification, *, era: str) -> None:
        """Dispatch one; `era` is "modern", "legacy" or "unknown"."""
        stream: TraceContext | None = None
        if era == "modern" and note.method in STREAMED:
            stream = self._admits(note)
            if stream is None:
                return
        kind = LIST_CHANGED.get(note.method)
        if note.method == "notifications/progress":
            progress = parse_progress(note.params)
            if progress is None or not self._on_progress(progress):
                self._drop("progress_unexpected")
        elif kind is not None and era != "unknown":
            self._on_list_changed(kind, self._told_us(note.method, era, stream=stream))
        elif note.method == "notifications/message":
            self._log_message(note.params, era)
        elif note.method == "notifications/resources/updated":
            self._resource_updated(note.params, era, stream)
        elif note.method == ELICITED and era == "legacy":
            self._told_us(note.method, era)  # the refused call asks again by itself
        elif note.method == "notifications/cancelled" and era == "legacy":
            self._on_cancelled(note.params)
        else:
            self._drop("notification_unknown")

    def _log_message(self, params: Raw | None, era: str) -> None:
        message = parse_log(params)
        told = self._told_us("notifications/message", era, level=message.level)
        if told is None or self.on_log is None:
            return
        try:
            self.on_log(message)
        except Exception:  # noqa: BLE001 - the embedding program's code must not end the reader
            self._drop("log_callback_failed")

    def _resource_updated(self, params: Raw | None, era: str, stream: TraceContext | None) -> None:
        """What was kept is stale at once, however many of these come."""
        self._told_us("notifications/resources/updated", era, stream=stream)
        uri = _decoded(params).get("uri")
        if isinstance(uri, str) and self.on_updated is not None:
            self.on_updated(uri)

    def _told_us(
        self,
        method: str,
        era: str,
        *,
        level: str | None = None,
        stream: TraceContext | None = None,
    ) -> TraceContext | None:
        """Its span, None where too many came in this second. `method` is one of those that are
        known here, so the counters are bounded."""
        now = self._clock.monotonic()
        if now - self._second >= 1.0:
            self._second = now
            self._told.clear()
        self._told[method] += 1
        if self._told[method] > TOLD_PER_SECOND:
            self._drop("message_flood")
            return None
        return self._telemetry.count(
            ServerMessage(peer=self._server, method=method, era=era, request=False, level=level),
            links=(Link(stream, "delivered_on"),) if stream is not None else (),
        )


def is_coroutine(value: object) -> bool:
    """Whether a progress callback of the embedding program was an `async def`."""
    return inspect.iscoroutine(value)


def _decoded(params: Raw | None) -> dict[str, Any]:
    if params is None:
        return {}
    try:
        value = msgspec.json.decode(params)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
