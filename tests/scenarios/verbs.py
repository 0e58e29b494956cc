"""Every verb of an operator, once: what it is called, what it records, what a restart keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Case(NamedTuple):
    """One verb on the server `s`. `path` and `body` are the API's, `argv` the command line's.

    `recorded`: the verb in its decision. `kept`: what a restart of the host has of it, in words.
    `{id}` is the id of an open call; `undo` brings things back.
    """

    verb: str
    path: str
    body: dict[str, Any] | None
    argv: tuple[str, ...]
    recorded: str
    kept: str
    method: str = "POST"
    undo: str | None = None
    server: str = "s"

    def about(self, way: str) -> str:
        """The server that its decision names."""
        return "t" if way == "cli" and "t" in self.argv else self.server


def _act(verb: str, kept: str, *, undo: str | None = None, **body: Any) -> Case:
    flags = ("--for", "1h") if "for_s" in body else ()
    argv = (verb, "s", *flags)
    return Case(verb, f"/servers/s/{verb}", body, argv, verb, kept, undo=undo)


NOTHING = "nothing: it happens once"
CASES = (
    _act("probe", NOTHING),
    _act("retry", "the end of a hold, a disable, a drain"),
    _act("restart", NOTHING),
    _act("hold", "the hold, until its time", undo="retry", for_s=3600),
    _act("drain", "that it is off, until its time", undo="enable", for_s=3600),
    _act("disable", "that it is off, until its time", undo="enable", for_s=3600),
    _act("enable", "that it is on"),
    Case(
        "disable NAME/TOOL",
        "/servers/s/disable",
        {"tool": "echo", "for_s": 3600},
        ("disable", "s/echo", "--for", "1h"),
        "disable",
        "that the tool is off, until its time",
    ),
    Case(
        "enable NAME/TOOL",
        "/servers/s/enable",
        {"tool": "echo"},
        ("enable", "s/echo"),
        "enable",
        "that the tool is on",
    ),
    Case(
        "allow",
        "/servers/s/allow",
        {"for_s": 3600},
        ("allow", "s", "--until", "2027-06-01"),
        "allow",
        "the allowance, until its time",
    ),
    Case(
        "cancel",
        "/calls/{id}",
        None,
        ("cancel", "{id}"),
        "cancel",
        NOTHING,
        method="DELETE",
    ),
    Case(
        "log-level",
        "/log-level",
        {"level": "debug", "for_s": 60},
        ("log-level", "debug", "--for", "60s"),
        "log-level",
        "nothing: the configuration's level",
        server="",
    ),
    Case(
        "capture",
        "/servers/s/capture",
        {"for_s": 60},
        ("capture", "t", "--for", "60s"),  # of one server there is one at a time
        "capture",
        "the file; the capture ends",
    ),
    Case(
        "reload",
        "/reload",
        {},
        ("reload",),
        "reload",
        "what the file says",
        server="",
    ),
    Case(
        "record purge",
        "/record/purge",
        {"before": 1.0},
        ("record", "purge", "--before", "2001-01-01", "--yes"),
        "purge",
        "that it is deleted",
        server="",
    ),
)


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Aligned, for a person who reads what the test did."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(c.ljust(width) for c, width in zip(row, widths, strict=True)) for row in rows
    )
