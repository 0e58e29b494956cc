"""What requests to the API carry, with the bounds of it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Raw

MAX_DEADLINE_S: Final = 86_400.0
"""A day: whatever takes longer is no call that somebody waits for."""
MAX_LOG_LEVEL_S: Final = 86_400.0
MAX_CAPTURE_S: Final = 3600.0
"""Both are for looking at something now."""

Deadline = Annotated[float, Meta(gt=0, le=MAX_DEADLINE_S, description="Seconds for the whole call")]
Reason = Annotated[str, Meta(description="Why; it is recorded with who asks")]
Seconds = Annotated[float, Meta(gt=0, description="Seconds from now")]
Moment = Annotated[float, Meta(description="Epoch seconds")]


class CallBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`arguments` pass through as they came."""

    name: str
    arguments: Raw = msgspec.field(default_factory=lambda: Raw(b"{}"))
    deadline_s: Deadline | None = None


class ReadBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`server` where another than the owner of `uri` is meant."""

    uri: str
    server: str | None = None
    deadline_s: Deadline | None = None


class ActBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of an act that happens once."""

    reason: Reason = ""


class RulingBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of an act that stands: `until` or `for_s`, or neither: until another act."""

    reason: Reason = ""
    until: Moment | None = None
    for_s: Seconds | None = None


class SwitchBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As of an act that stands; `tool` (its local name) where one tool alone is meant."""

    reason: Reason = ""
    until: Moment | None = None
    for_s: Seconds | None = None
    tool: str | None = None


class ReloadBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`dry_run`: only say what would be done."""

    dry_run: bool = False
    reason: Reason = ""


class PurgeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to delete from the record: what ended before a moment, or is about one server."""

    before: Moment | None = None
    server: str | None = None
    dry_run: bool = False
    reason: Reason = ""


class LogLevelBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The level of the host's own log lines, for a time."""

    level: Literal["debug", "info", "warning", "error"]
    for_s: Annotated[float, Meta(gt=0, le=MAX_LOG_LEVEL_S)] = 900.0
    reason: Reason = ""


class CaptureBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`arguments`: keep arguments and results, too; secrets are masked all the same."""

    for_s: Annotated[float, Meta(gt=0, le=MAX_CAPTURE_S)] = 60.0
    arguments: bool = False
    reason: Reason = ""
