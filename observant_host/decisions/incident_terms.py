"""The words in which an incident is told, and what its class is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from observant_host.wire.revisions import MODERN_ERRORS

Piece = Mapping[str, Any]
"""One evidence object, with the keys of `explain --json`."""


class IncidentKind(StrEnum):
    """What happened: legacy was spoken, a server failed, or a person is waited for."""

    DOWNGRADE = "downgrade"
    OUTAGE = "outage"
    REFUSAL = "refusal"


class IncidentClass(StrEnum):
    """Why it happened, as far as the record can tell."""

    SERVER_ROLLBACK = "server_rollback"
    FALSE_TIMEOUT = "false_timeout"
    INTERMEDIARY = "intermediary"
    ALLOWANCE = "allowance"
    SPECIFICATION_VIOLATION = "specification_violation"
    HOST_SIDE = "host_side"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the class of one incident is judged by.

    reason: of the decision that began it; "" where none did.
    evidence: of that decision and those that repeated it; `after`: of the decision that ended it.
    proven: the server had been modern before, in the record.
    first_legacy: the first time that legacy was chosen for it in the record.
    legacy_offered: a legacy revision was among the candidates, so a permission stood.
    modern_in_life: modern evidence had been given earlier in the same life.
    allowed_by: who said `allow` since it was last modern; "" where nobody did.
    version_before, version_after: what the server called its own version; None where not known.
    restarted: its process or connection was replaced before it was well again.
    stall_ms: the longest stall of the event loop around the decision.
    fell, peers: servers of the same host that fell in the same minutes, and all that it has.
    witnesses, hosts: hosts that saw this incident, and all that are in the record.
    noted: sentences that are said where no cause is found (how a process ended, what was refused).
    """

    kind: IncidentKind
    reason: str = ""
    expected: bool = True
    evidence: tuple[Piece, ...] = ()
    after: tuple[Piece, ...] = ()
    proven: bool = False
    first_legacy: bool = False
    legacy_offered: bool = False
    modern_in_life: bool = False
    allowed_by: str = ""
    version_before: str | None = None
    version_after: str | None = None
    healed_modern: bool = False
    restarted: bool = False
    stall_ms: float = 0.0
    fell: tuple[str, ...] = ()
    peers: int = 1
    witnesses: int = 1
    hosts: int = 1
    noted: tuple[str, ...] = ()

    @property
    def replaced(self) -> bool:
        """The server says that it is another version than before."""
        before, after = self.version_before, self.version_after
        return before is not None and after is not None and before != after

    @property
    def silent(self) -> bool:
        """What was decided rests on an answer that did not come in time."""
        return self.reason in _SILENT or any(
            one.get("step") == "discover" and one.get("outcome") == "timeout"
            for one in self.evidence
        )

    @property
    def late_proof(self) -> Piece | None:
        """A modern answer to a probe that had been given up."""
        return next(
            (one for one in (*self.evidence, *self.after) if one.get("late") and is_modern(one)),
            None,
        )


class Verdict(msgspec.Struct, frozen=True):
    """A class, how sure it is, and sentences that say why."""

    name: IncidentClass
    confidence: Confidence
    why: tuple[str, ...]


def is_modern(one: Piece) -> bool:
    """Whether this answer proves a modern server."""
    return (
        one.get("outcome") in ("modern_error", "modern_evidence")
        or (one.get("step") == "discover" and one.get("outcome") == "ok")
        or one.get("rpc_code") in MODERN_ERRORS
    )


_SILENT: Final = frozenset({"ambiguous_timeout", "late_modern_evidence"})
