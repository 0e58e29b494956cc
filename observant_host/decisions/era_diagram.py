"""The table of eras as a picture, drawn from the table itself so that it cannot lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.decisions.era_table import FIRST, TRANSITIONS, Do, Phase

if TYPE_CHECKING:
    from observant_host.decisions.terms import Reason


def diagram() -> str:
    """A Mermaid `stateDiagram-v2`: edges carry reasons, then what is done."""
    edges: dict[tuple[Phase, Phase, Do], list[Reason]] = {}
    for (before, _), (do, after, reason) in TRANSITIONS.items():
        reasons = edges.setdefault((before, after, do), [])
        if reason not in reasons:
            reasons.append(reason)
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {phase}: {when}" for phase, when in FIRST.items()]
    lines += [
        f"    {before} --> {after}: {', '.join(reasons)} / {do}"
        for (before, after, do), reasons in edges.items()
    ]
    lines += [f"    {phase} --> [*]" for phase in (Phase.MODERN, Phase.UNAVAILABLE, Phase.ENDED)]
    return "\n".join(lines) + "\n"
