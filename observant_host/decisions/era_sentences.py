"""Every reason as a sentence for a person, with the next step: the line to add, the command to run.

Names, codes, revisions, durations and the names of fields go in, never the text of an answer: what
a server wrote is evidence, shown masked beside the sentence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from observant_host.decisions.era_words import (
    AFTER_EVIDENCE,
    ELSEWHERE,
    EXPECT_MODERN,
    NO_SSE,
    OUTAGE,
    OVER_HTTP,
    SENTENCES,
    SILENT,
)
from observant_host.decisions.evidence_kinds import ONLY_HTTP, EvidenceKind
from observant_host.decisions.terms import Reason
from observant_host.wire.revisions import LEGACY, MODERN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from observant_host.decisions.evidence import Evidence

_FRAMED: Final = (
    "It frames its messages by Content-Length headers, as language servers do, while MCP has one"
    " message on each line: start it in its MCP mode, or update it."
)
_HEADER: Final = re.compile(r"content-length: *[0-9]+", re.IGNORECASE)
_UNREADABLE: Final = frozenset({"malformed", "invalid"})
_CHOSEN: Final = frozenset({Reason.DISCOVER_OK, Reason.INITIALIZE_OK, Reason.MODERN_ERROR_RETRY})


def sentence(
    reason: Reason,
    *,
    server: str,
    evidence: Sequence[Evidence] = (),
    allowed: Sequence[str] = (),
    expires: date | None = None,
    proven: bool = False,
    expect_modern: bool = False,
) -> str:
    """Why, and what to do.

    `evidence` is the round's, in order; the last one is what the reason is about. `allowed` are the
    permitted legacy revisions, `expires` the last day of an allowance that ended. `proven`: memory,
    `expect_era` or this life says that the server is modern.
    """
    shown = any(each.proves_modern for each in evidence)
    last = evidence[-1] if evidence else None
    template = (last and _of_exchange(reason, last)) or _template(
        reason,
        proven=proven,
        shown=shown,
        expect_modern=expect_modern,
        http=any(each.http_status or each.kind in ONLY_HTTP for each in evidence),
    )
    if reason not in _CHOSEN and _frames_by_headers(evidence):
        template = f"{template} {_FRAMED}"
    return template.format_map(
        {
            "server": server,
            "table": table_of(server),
            "ours": _listed(MODERN),
            "legacy": _listed(LEGACY),
            "allowed": _listed(allowed),
            "expired": f" on {expires.isoformat()}" if expires else "",
            **_facts(last),
        }
    )


def _of_exchange(reason: Reason, last: Evidence) -> str | None:
    """Where the same reason has another next step after this very exchange."""
    if last.kind is EvidenceKind.HTTP_REDIRECTED:
        return ELSEWHERE
    if last.kind is EvidenceKind.HTTP_TIMEOUT and not last.problem:
        return SILENT
    if last.step == "get_sse" and reason.startswith("legacy_probe"):
        return NO_SSE
    return None


def _template(reason: Reason, *, proven: bool, shown: bool, expect_modern: bool, http: bool) -> str:
    """The same reason asks for another next step where the server is known to be modern."""
    ambiguous = reason.startswith("ambiguous")
    if reason is Reason.AMBIGUOUS_TIMEOUT and (proven or shown):
        return OUTAGE
    if ambiguous and shown:
        return AFTER_EVIDENCE
    if expect_modern and (ambiguous or reason is Reason.WAS_MODERN):
        return EXPECT_MODERN
    told = Reason.WAS_MODERN if ambiguous and proven else reason
    return OVER_HTTP.get(told, SENTENCES[told]) if http else SENTENCES[told]


def _frames_by_headers(evidence: Sequence[Evidence]) -> bool:
    """Whether what came instead of an answer has the framing of another protocol."""
    odd = (one for one in evidence if one.http_status is None and one.outcome in _UNREADABLE)
    return any(_HEADER.search(one.excerpt) for one in odd)


def table_of(server: str) -> str:
    """The TOML table of a server, quoted where its name needs it."""
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", server)
    return f"[servers.{server}]" if bare else f'[servers."{server}"]'


def _facts(last: Evidence | None) -> dict[str, str]:
    if last is None:
        return dict.fromkeys(("code", "within", "problem"), "") | dict.fromkeys(
            ("chosen", "offered", "supported"), "an unknown revision"
        )
    seconds = "" if last.timeout_ms is None else f" within {last.timeout_ms / 1000:g} s"
    return {
        "code": _code(last),
        "within": seconds,
        "problem": f" ({last.problem[:_MAX_PROBLEM]})" if last.problem else "",
        "chosen": _listed((last.chosen,) if last.chosen else ()),
        "offered": _listed((last.version,) if last.version else ()),
        "supported": _listed(last.supported),
    }


def _code(last: Evidence) -> str:
    """What the answer said in numbers, and of which type it was where that is an odd one."""
    parts = [f"HTTP {last.http_status}"] if last.http_status is not None else []
    if last.content_type and not _CARRIES_MESSAGES.search(last.content_type):
        parts.append(_listed((last.content_type,)))
    if last.rpc_code is not None:
        parts.append(str(last.rpc_code))
    return f" ({', '.join(parts)})" if parts else ""


_CARRIES_MESSAGES: Final = re.compile(r"json|event-stream", re.IGNORECASE)
_MAX_PROBLEM: Final = 300
_MAX_LISTED: Final = 8
_MAX_REVISION: Final = 32


def _listed(revisions: Sequence[str]) -> str:
    """Revisions in a sentence: few, short, printable, since some come from a server."""
    shown = [each[:_MAX_REVISION] if each.isprintable() else "?" for each in revisions]
    if not shown:
        return "no revision"
    rest = len(shown) - _MAX_LISTED
    return ", ".join(shown[:_MAX_LISTED]) + (f" and {rest} more" if rest > 0 else "")
