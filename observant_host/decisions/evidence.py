"""What an answer proves about a server's era: judged once, in words that a table can take.

Only two things prove a modern server: a DiscoverResult, and one of three error codes. Only one
thing proves a legacy server: a valid initialize result. Everything else is ambiguous, and no other
error code is special.

Source: MCP 2026-07-28 basic/versioning › Protocol Version Negotiation,
basic/transports/stdio › Backward Compatibility, basic/index › Error Codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Raw

from observant_host.decisions.evidence_kinds import (
    LEGACY_OUTCOMES,
    OUTCOMES,
    PROVE_MODERN,
    EvidenceKind,
)
from observant_host.wire.jsonrpc import Broken, Error, Result
from observant_host.wire.messages import is_empty, parse_discover, parse_initialize, string_list
from observant_host.wire.revisions import (
    LEGACY,
    MODERN,
    MODERN_ERRORS,
    UNSUPPORTED_PROTOCOL_VERSION,
)

if TYPE_CHECKING:
    from observant_host.decisions.terms import LegacyProbeOutcome, ProbeOutcome

EXCERPT_BYTES: Final = 512


EvidenceStep = Literal["spawn", "connect", "discover", "initialize", "get_sse"]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What only the driver knows of an answer.

    `version` is the revision that was offered, `excerpt` at most 512 bytes of what came, already
    masked; `late` where the answer came after its deadline.
    """

    version: str | None = None
    excerpt: str = ""
    elapsed_ms: float | None = None
    timeout_ms: float | None = None
    late: bool = False


class Silence(msgspec.Struct, frozen=True):
    """The deadline passed. `noise`: something came, but no answer (no messages, foreign ids)."""

    noise: bool = False


class Closed(msgspec.Struct, frozen=True):
    """The life ended first; `detail` is the transport's sentence (exit status, masked)."""

    detail: str = ""


Answer = Result | Error | Broken | Silence | Closed


class Evidence(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One answer, judged.

    `chosen` is the revision to go on with: for DISCOVER_OK and VERSION_MUTUAL the mutual modern
    one, for INITIALIZE_OK the agreed legacy one. `supported` is what the server said it speaks.
    `problem` says what was wrong with an answer, in words that hold none of its secrets.
    """

    kind: EvidenceKind
    step: EvidenceStep
    version: str | None = None
    rpc_code: int | None = None
    http_status: int | None = None
    content_type: str | None = None
    excerpt: str = ""
    elapsed_ms: float | None = None
    timeout_ms: float | None = None
    late: bool = False
    supported: tuple[str, ...] = ()
    chosen: str | None = None
    problem: str = ""

    @property
    def outcome(self) -> ProbeOutcome | LegacyProbeOutcome:
        if self.step in ("initialize", "get_sse"):
            return LEGACY_OUTCOMES.get(self.kind, OUTCOMES[self.kind])
        return OUTCOMES[self.kind]

    @property
    def proves_modern(self) -> bool:
        """After this the life never sends `initialize`, and the server is remembered as modern."""
        return self.kind in PROVE_MODERN

    def to_dict(self) -> dict[str, Any]:
        """The evidence object of `status --json` and `explain --json`."""
        return {
            "step": self.step,
            "version": self.version,
            "outcome": self.outcome.value,
            "rpc_code": self.rpc_code,
            "http_status": self.http_status,
            "content_type": self.content_type,
            "excerpt": self.excerpt,
            "elapsed_ms": self.elapsed_ms,
            "timeout_ms": self.timeout_ms,
            "late": self.late,
        }


def excerpt_of(frame: bytes) -> str:
    """The first 512 bytes of a frame as text, before masking."""
    return frame[:EXCERPT_BYTES].decode(errors="replace")


def judge_spawn(detail: str, *, seen: Seen) -> Evidence:
    """No process came to be; `detail` is the transport's sentence, masked."""
    return _evidence(EvidenceKind.SPAWN_FAILED, "spawn", seen, problem=detail)


def judge_discover(
    answer: Answer, *, seen: Seen, paired: bool = True, modern: tuple[str, ...] = MODERN
) -> Evidence:
    """Judge what came of `server/discover`.

    `paired` is False where the reply's id only resembled ours: then its result proves nothing, but
    a recognised code still does. `modern` are the revisions we speak, preferred first.
    """
    match answer:
        case Silence(noise=noise):
            kind = EvidenceKind.NOISE if noise else EvidenceKind.TIMEOUT
            return _evidence(kind, "discover", seen)
        case Closed(detail=detail):
            return _evidence(EvidenceKind.CLOSED, "discover", seen, problem=detail)
        case Error(code=code) if code in MODERN_ERRORS:
            return _modern_error(answer, seen, modern)
        case Broken(code=code, problem=problem) if code in MODERN_ERRORS:
            kind = EvidenceKind.MODERN_ERROR
            return _evidence(kind, "discover", seen, rpc_code=code, problem=problem)
        case Error(id=request_id, code=code) if paired or request_id is None:
            return _evidence(EvidenceKind.ERROR, "discover", seen, rpc_code=code)
        case Broken(problem=problem):
            return _evidence(EvidenceKind.MALFORMED, "discover", seen, problem=problem)
        case Result(result=raw) if paired:
            return _discover_result(raw, seen, modern)
        case _:  # a reply under an id that only resembles ours
            return _evidence(EvidenceKind.MALFORMED, "discover", seen, problem=_RESEMBLES)


def judge_initialize(
    answer: Answer, *, seen: Seen, allowed: tuple[str, ...], paired: bool = True
) -> Evidence:
    """Judge what came of `initialize`; `allowed` are the legacy revisions that a person permits."""
    match answer:
        case Silence():
            return _evidence(EvidenceKind.INITIALIZE_TIMEOUT, "initialize", seen)
        case Closed(detail=detail):
            return _evidence(EvidenceKind.INITIALIZE_CLOSED, "initialize", seen, problem=detail)
        case Error(code=code) | Broken(code=code) if code in MODERN_ERRORS:
            return _evidence(EvidenceKind.INITIALIZE_MODERN, "initialize", seen, rpc_code=code)
        case Error(id=request_id, code=code) if paired or request_id is None:
            return _evidence(EvidenceKind.INITIALIZE_ERROR, "initialize", seen, rpc_code=code)
        case Broken(problem=problem):
            return _evidence(EvidenceKind.INITIALIZE_INVALID, "initialize", seen, problem=problem)
        case Result(result=raw) if paired:
            return _initialize_result(raw, seen, allowed)
        case _:  # a reply under an id that only resembles ours
            kind = EvidenceKind.INITIALIZE_INVALID
            return _evidence(kind, "initialize", seen, problem=_RESEMBLES)


_RESEMBLES: Final = "the reply's id is not the one that was sent"

_VERSION_KINDS: Final = (
    EvidenceKind.VERSION_MUTUAL,
    EvidenceKind.VERSION_LEGACY_ONLY,
    EvidenceKind.VERSION_NO_MUTUAL,
)
_DISCOVER_KINDS: Final = (
    EvidenceKind.DISCOVER_OK,
    EvidenceKind.DISCOVER_LEGACY_ONLY,
    EvidenceKind.DISCOVER_NO_MUTUAL,
)


def _modern_error(error: Error, seen: Seen, modern: tuple[str, ...]) -> Evidence:
    supported = _supported(error.data) if error.code == UNSUPPORTED_PROTOCOL_VERSION else None
    if supported is None:
        return _evidence(EvidenceKind.MODERN_ERROR, "discover", seen, rpc_code=error.code)
    return _by_versions(_VERSION_KINDS, supported, seen, modern, rpc_code=error.code)


def _discover_result(raw: Raw, seen: Seen, modern: tuple[str, ...]) -> Evidence:
    if is_empty(raw):
        return _evidence(EvidenceKind.EMPTY, "discover", seen, problem="the result is empty")
    found = parse_discover(raw)
    if isinstance(found, str):
        return _evidence(EvidenceKind.MALFORMED, "discover", seen, problem=found)
    return _by_versions(_DISCOVER_KINDS, found.supported_versions, seen, modern)


def _initialize_result(raw: Raw, seen: Seen, allowed: tuple[str, ...]) -> Evidence:
    found = parse_initialize(raw)
    if isinstance(found, str):
        return _evidence(EvidenceKind.INITIALIZE_INVALID, "initialize", seen, problem=found)
    agreed = found.version in allowed
    kind = EvidenceKind.INITIALIZE_OK if agreed else EvidenceKind.INITIALIZE_REVISION
    return _evidence(
        kind,
        "initialize",
        seen,
        supported=(found.version,),
        chosen=found.version if agreed else None,
    )


def _by_versions(
    kinds: tuple[EvidenceKind, EvidenceKind, EvidenceKind],
    supported: tuple[str, ...],
    seen: Seen,
    modern: tuple[str, ...],
    *,
    rpc_code: int | None = None,
) -> Evidence:
    """`kinds`: there is a mutual modern revision, only legacy ones are named, neither."""
    mutual, legacy_only, neither = kinds
    chosen = next((version for version in modern if version in supported), None)
    if chosen is not None:
        kind = mutual
    else:
        kind = legacy_only if supported and set(supported) <= set(LEGACY) else neither
    return _evidence(kind, "discover", seen, rpc_code=rpc_code, supported=supported, chosen=chosen)


def _supported(data: Raw | None) -> tuple[str, ...] | None:
    """`data.supported` where it is a list of strings; None where there is no readable list."""
    if data is None:
        return None
    try:
        decoded = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return string_list(decoded.get("supported")) if isinstance(decoded, dict) else None


def _evidence(
    kind: EvidenceKind,
    step: EvidenceStep,
    seen: Seen,
    *,
    rpc_code: int | None = None,
    supported: tuple[str, ...] = (),
    chosen: str | None = None,
    problem: str = "",
) -> Evidence:
    return Evidence(
        kind=kind,
        step=step,
        version=seen.version,
        rpc_code=rpc_code,
        excerpt=seen.excerpt,
        elapsed_ms=seen.elapsed_ms,
        timeout_ms=seen.timeout_ms,
        late=seen.late,
        supported=supported,
        chosen=chosen,
        problem=problem,
    )
