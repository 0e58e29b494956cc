"""Every path of a table of eras: what the promises about it are checked on."""

from __future__ import annotations

from observant_host.decisions.era_table import Do, Phase, Table
from observant_host.decisions.evidence_kinds import EvidenceKind

Path = tuple[tuple[Phase, EvidenceKind, Do], ...]


def paths_from(table: Table, phase: Phase, *, walked: Path = ()) -> list[Path]:
    """Every path from a phase to where nothing more is decided, and each of its beginnings."""
    rows = [(kind, row) for (before, kind), row in table.rows.items() if before is phase]
    if not rows:
        return [walked]
    return [walked] * bool(walked) + [
        path
        for kind, (do, after, _) in rows
        for path in paths_from(table, after, walked=(*walked, (phase, kind, do)))
    ]


def every_path(table: Table) -> dict[Phase, list[Path]]:
    return {phase: paths_from(table, phase) for phase in table.first}
