"""The lines that `init` and `probe --suggest-legacy` propose: TOML text as a pure function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

ALLOWANCE_DAYS = 180


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one bounded trial of one server showed.

    `era`: "modern", "legacy" (reached by the trial's one legacy handshake) or "unknown" (failed;
    `detail` is the sentence for a person). `start_s`: seconds until its era was known.
    """

    name: str
    era: str
    version: str | None = None
    tools: int = 0
    start_s: float = 0.0
    detail: str = ""
    fingerprint: str = ""


def suggestion_lines(finding: Finding, *, today: date, reason: str | None = None) -> list[str]:
    """The `[servers.NAME]` lines that allow this one legacy server, or comments why not."""
    raise NotImplementedError


def init_file(findings: Sequence[Finding], *, imports: Sequence[str], today: date) -> str:
    """The text of a new `observant-host.toml` that imports `imports`."""
    raise NotImplementedError
