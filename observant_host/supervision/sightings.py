"""Evidence that no round of negotiation saw: a life that did not begin, an answer that was late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from observant_host.decisions.terms import ProbeOutcome
from observant_host.wire.jsonrpc import Error

if TYPE_CHECKING:
    from observant_host.peers.life import Life
    from observant_host.telemetry.masking import Masker

Sighting = dict[str, Any]

EXCERPT_CHARS = 512
"""Of what was seen: enough to recognise it, never a whole answer."""


def spawn_evidence(detail: str) -> tuple[Sighting, ...]:
    """The evidence object of a life that could not begin."""
    return (_sighting("spawn", ProbeOutcome.CLOSED, excerpt=detail),)


def late_evidence(life: Life, masker: Masker) -> tuple[Sighting, ...]:
    """The evidence object of the modern answer that came after `initialize` was written."""
    probe = life.probes.late_modern
    if probe is None:
        return ()
    code = probe.answer.code if isinstance(probe.answer, Error) else None
    seen = _sighting(
        probe.method.removeprefix("server/"),
        ProbeOutcome.OK if code is None else ProbeOutcome.MODERN_ERROR,
        excerpt=masker.bytes(probe.excerpt).decode("utf-8", "replace"),
    )
    return (
        {
            **seen,
            "version": probe.version,
            "rpc_code": code,
            "elapsed_ms": round((probe.answered_at - probe.sent_at) * 1000, 3),
            "late": True,
        },
    )


def _sighting(step: str, outcome: ProbeOutcome, *, excerpt: str) -> Sighting:
    return {
        "step": step,
        "version": None,
        "outcome": outcome,
        "rpc_code": None,
        "http_status": None,
        "content_type": None,
        "excerpt": excerpt[:EXCERPT_CHARS],
        "elapsed_ms": None,
        "timeout_ms": None,
        "late": False,
    }
