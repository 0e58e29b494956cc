"""Every reason as a sentence for a person, with the next step: the line to add, the command to run.

Names, codes, revisions, durations and the names of fields go in, never the text of an answer: what
a server wrote is evidence, shown masked beside the sentence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from observant_host.decisions.terms import Reason
from observant_host.wire.revisions import LEGACY, MODERN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from observant_host.decisions.evidence import Evidence

_ALLOW: Final = (
    "If you know that it is an old server, add `allow_legacy = true` to {table}, or run"
    " `observant-host probe {server} --suggest-legacy` to see the exact lines."
)
_LOOK: Final = "Run `observant-host explain {server}` to see what it sent."
_UPDATE: Final = "Update the server, or this host. " + _LOOK
_AS_BEFORE: Final = (
    "If it was really replaced by an old one, run `observant-host allow {server}`; otherwise bring"
    " the modern version back."
)

_SENTENCES: Final[dict[Reason, str]] = {
    Reason.DISCOVER_OK: "{server} is modern and speaks {chosen}.",
    Reason.MODERN_ERROR_RETRY: "{server} is modern but refused {offered}; asking again with"
    " {chosen}.",
    Reason.MODERN_ERROR_UNFIXABLE: "{server} is modern but refuses our requests{code}, and nothing"
    " that this host could change would help. " + _UPDATE,
    Reason.NO_MUTUAL_VERSION: "{server} is modern but speaks {supported}, while this host speaks"
    " {ours}. " + _UPDATE,
    Reason.LEGACY_ONLY_ADVERTISED: "{server} answers like a modern server but offers only"
    " {supported}, while this host speaks {ours} with such servers; no option changes that. Update"
    " the server, or switch off its modern side if it has one.",
    Reason.LATE_MODERN_EVIDENCE: "{server} proved to be modern after it had been taken for an old"
    " server; it is started afresh and asked again. Raise `probe_timeout_s` in {table} so that it"
    " has time to answer, and remove its `allow_legacy`.",
    Reason.INITIALIZE_OK: "{server} is an old server and speaks {chosen}, as `allow_legacy`"
    " permits.",
    Reason.AMBIGUOUS_TIMEOUT: "{server} did not answer server/discover{within}. It may be slow or"
    " old, and silence proves neither; a late answer still counts. If it is slow, raise"
    " `probe_timeout_s` in {table}. " + _ALLOW,
    Reason.AMBIGUOUS_CLOSED: "{server} ended before it answered server/discover{problem}. Check its"
    " command with `observant-host doctor`. " + _ALLOW,
    Reason.AMBIGUOUS_ERROR: "{server} answered server/discover with an error{code} that proves no"
    " era. " + _ALLOW,
    Reason.AMBIGUOUS_EMPTY: "{server} answered server/discover with an empty result, which proves"
    " no era. " + _ALLOW,
    Reason.AMBIGUOUS_MALFORMED: "{server} gave no valid answer to server/discover{problem}. Check"
    " that its command starts an MCP server. " + _ALLOW,
    Reason.LEGACY_PROBE_TIMEOUT: "{server} gave no modern answer, and none to initialize{within}."
    " If it is slow to start, raise `probe_timeout_s` and"
    " `legacy_probe_timeout_ms` in {table}; check its command with `observant-host doctor`.",
    Reason.LEGACY_PROBE_ERROR: "{server} answered initialize with an error{code}. " + _LOOK,
    Reason.LEGACY_PROBE_INVALID: "{server} gave no valid answer to initialize{problem}. Update the"
    " server. " + _LOOK,
    Reason.LEGACY_PROBE_CLOSED: "{server} ended before it answered initialize{problem}. Check its"
    " command with `observant-host doctor`.",
    Reason.LEGACY_UNSUPPORTED_REVISION: "{server} answered initialize with {supported}, but only"
    " {allowed} may be used with it. If that is one of {legacy}, add it to `allow_legacy` in"
    " {table}; otherwise update the server.",
    Reason.WAS_MODERN: "{server} was modern before and now gives no modern answer{code}{problem},"
    " so it was not asked to go back to an old protocol. " + _AS_BEFORE,
    Reason.ALLOWANCE_EXPIRED: "{server} gave no modern answer{code}{problem}, and its permission"
    " to use an old protocol ended{expired}. Set a later `legacy_expires` in {table}, or run"
    " `observant-host allow {server}`.",
    Reason.ALLOWANCE_MISMATCH: "{server} gave no modern answer{code}{problem}, and its permission"
    " to use an old protocol is for another command: its fingerprint changed. If the change was"
    " meant, update `legacy_fingerprint` in {table}, or run `observant-host allow {server}`.",
    Reason.AUTH_REQUIRED: "{server} wants a login. Give it a token in `headers` of {table}.",
    Reason.FORBIDDEN: "{server} refused these credentials. Check `headers` in {table} and the"
    " rights of that account.",
    Reason.RATE_LIMITED: "{server} asks for fewer requests; it is asked again later by itself. If"
    " that lasts, run `observant-host status {server}`.",
    Reason.UNREACHABLE: "{server} cannot be reached. Check its `url` in {table} and the network"
    " with `observant-host doctor`; it is asked again by itself.",
    Reason.HTTP_UNAVAILABLE: "{server} answers, but not as an MCP server today; it is asked again"
    " by itself. " + _LOOK,
    Reason.SPAWN_FAILED: "{server} could not be started{problem}. Check `command` and `cwd` in"
    " {table} with `observant-host doctor`.",
    Reason.CONFIG_INVALID: "{server} cannot be used as it is configured{problem}. Run"
    " `observant-host config check`.",
}

_EXPECT_MODERN: Final = (
    "{server} gives no modern answer{code}{problem}, and `expect_era` in {table} forbids any other."
    ' If it really is an old server, remove `expect_era = "modern"`; otherwise bring the modern'
    " version back."
)
_OUTAGE: Final = (
    "{server} did not answer server/discover{within}. It is known to be modern, so this is an"
    " outage and no reason to try an old protocol; it is asked again by itself. Check it with"
    " `observant-host doctor`, and raise `probe_timeout_s` in {table} if it is merely slow."
)
_AFTER_EVIDENCE: Final = (
    "{server} showed itself modern and then gave no usable answer to server/discover"
    "{code}{problem}; it is asked again by itself. " + _LOOK
)


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
    template = _template(reason, proven=proven, shown=shown, expect_modern=expect_modern)
    last = evidence[-1] if evidence else None
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


def _template(reason: Reason, *, proven: bool, shown: bool, expect_modern: bool) -> str:
    """The same reason asks for another next step where the server is known to be modern."""
    ambiguous = reason.startswith("ambiguous")
    if reason is Reason.AMBIGUOUS_TIMEOUT and (proven or shown):
        return _OUTAGE
    if ambiguous and shown:
        return _AFTER_EVIDENCE
    if expect_modern and (ambiguous or reason is Reason.WAS_MODERN):
        return _EXPECT_MODERN
    return _SENTENCES[Reason.WAS_MODERN if ambiguous and proven else reason]


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
        "code": "" if last.rpc_code is None else f" ({last.rpc_code})",
        "within": seconds,
        "problem": f" ({last.problem[:_MAX_PROBLEM]})" if last.problem else "",
        "chosen": _listed((last.chosen,) if last.chosen else ()),
        "offered": _listed((last.version,) if last.version else ()),
        "supported": _listed(last.supported),
    }


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
