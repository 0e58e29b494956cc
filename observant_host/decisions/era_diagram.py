"""The tables of eras as pictures, drawn from the tables themselves so that they cannot lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.decisions.era_table import OVER, Do, Phase, Table

if TYPE_CHECKING:
    from observant_host.decisions.terms import Reason


def diagram(table: Table) -> str:
    """A Mermaid `stateDiagram-v2`: edges carry reasons, then what is done."""
    edges: dict[tuple[Phase, Phase, Do], list[Reason]] = {}
    for (before, _), (do, after, reason) in table.rows.items():
        reasons = edges.setdefault((before, after, do), [])
        if reason not in reasons:
            reasons.append(reason)
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {phase}: {when}" for phase, when in table.first.items()]
    lines += [
        f"    {before} --> {after}: {', '.join(reasons)} / {do}"
        for (before, after, do), reasons in edges.items()
    ]
    lines += [f"    {phase} --> [*]" for phase in OVER]
    return "\n".join(lines) + "\n"
