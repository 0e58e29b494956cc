"""The lines that `init` and `probe --suggest-legacy` propose: TOML text as a pure function."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

import msgspec

ALLOWANCE_DAYS: Final = 180
"""Long enough for a migration, short enough to be looked at again."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one bounded trial of one server showed.

    `era`: "modern", "legacy" (reached by the trial's one legacy handshake) or "unknown" (failed;
    `detail` is the sentence for a person). `start_s`: seconds until its era was known.
    `allowance` are the keys that let a legacy server be served (see `allowance_keys`). `tried` is
    False where it was not even started: its configuration cannot be used, or it is `disabled`.
    """

    name: str
    era: str
    version: str | None = None
    tools: int = 0
    start_s: float = 0.0
    detail: str = ""
    allowance: Mapping[str, Any] = {}
    tried: bool = True
    disabled: bool = False


def allowance_keys(
    revision: str, *, fingerprint: str, today: date, reason: str | None = None
) -> dict[str, Any]:
    """The keys of one explicit, reasoned, pinned, expiring allowance, in the order to write."""
    return {
        "allow_legacy": [revision],
        "legacy_reason": reason or f"answered initialize with {revision} on {today.isoformat()}",
        "legacy_fingerprint": fingerprint,
        "legacy_expires": today + timedelta(days=ALLOWANCE_DAYS),
    }


def suggestion_lines(server: str, allowance: Mapping[str, Any]) -> list[str]:
    """TOML lines of a `[servers.NAME]` table that allow this one legacy server."""
    return [f"[servers.{toml_key(server)}]"] + [
        f"{key} = {_written(key, value)}" for key, value in allowance.items()
    ]


def _written(key: str, value: Any) -> str:
    """A date may come as its ISO text (JSON knows no dates); revisions only look like dates."""
    return value if key == "legacy_expires" and isinstance(value, str) else toml_value(value)


def toml_key(key: str) -> str:
    """A bare key where TOML allows one, else a quoted one."""
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else toml_value(key)


def toml_value(value: Any) -> str:
    """One value as TOML, on one line. Dates may be given as `date`; None is an empty text."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return repr(value)
        case date():
            return value.isoformat()
        case list() | tuple():
            return "[" + ", ".join(toml_value(item) for item in value) + "]"
        case dict():
            inner = ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items())
            return "{ " + inner + " }" if inner else "{}"
        case _:
            return '""'


def init_file(findings: Sequence[Finding], *, imports: Sequence[str], today: date) -> str:
    """The text of a new `observant-host.toml`.

    It imports the clients' files as they are (so that secrets stay where they were) and holds one
    explicit entry for each legacy server; what failed is a comment with its sentence.
    """
    lines = [
        f"# Written by `observant-host init` on {today.isoformat()}.",
        "# Servers and their secrets stay in the imported files, which are read and never changed.",
        "",
        "version = 1",
        "",
        "[host]",
        f"import = {toml_value(list(imports))}",
    ]
    for finding in findings:
        lines += ["", *_server_lines(finding)]
    return "\n".join(lines) + "\n"


def _server_lines(finding: Finding) -> list[str]:
    if finding.era == "legacy" and finding.allowance:
        why = "speaks a legacy revision; allowed until the date below, for this command only"
        lines = suggestion_lines(finding.name, finding.allowance)
        return [_comment(f"{finding.name} {why}."), *lines]
    if finding.era == "modern":
        return [_comment(f"{finding.name} speaks {finding.version or 'the modern protocol'}.")]
    sentence = finding.detail or "no reason is known"
    what = "could not be used" if finding.tried else "was not started"
    lines = [_comment(f"{finding.name} {what}: {sentence}")]
    if finding.disabled:
        return lines
    again = "Try again" if finding.tried else "Once that is mended"
    return [
        *lines,
        _comment(f"{again}: observant-host probe {finding.name} --suggest-legacy"),
    ]


def _comment(text: str) -> str:
    """One comment line: a server's words cannot end it and begin TOML of their own."""
    return "# " + "".join(c if c.isprintable() else " " for c in text)
