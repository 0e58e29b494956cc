"""One HTTP exchange as evidence sees it, and what of it may be anybody's.

A gateway, a proxy or a login page answers in the server's place: these are causes of being
unavailable, and no evidence.
"""

from __future__ import annotations

import msgspec

from observant_host.decisions.evidence import Evidence, EvidenceStep, Seen
from observant_host.decisions.evidence_kinds import EvidenceKind
from observant_host.wire.jsonrpc import Broken, Error, Result
from observant_host.wire.revisions import METHOD_NOT_FOUND

Reply = Result | Error | Broken


class Exchange(msgspec.Struct, frozen=True):
    """One HTTP exchange, however it was told. `status` is 0 where there was none.

    `delivered`: the message came as an answer should, so that it can be used.
    """

    seen: Seen
    step: EvidenceStep
    status: int = 0
    content_type: str = ""
    message: Reply | None = None
    paired: bool = True
    delivered: bool = False
    blank: bool = False
    failure: str = ""
    problem: str = ""

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    @property
    def method_unknown(self) -> bool:
        """404 with -32601: of the shape in which only a modern server says this."""
        known = isinstance(self.message, Error) and self.message.code == METHOD_NOT_FOUND
        return known and self.status == 404

    @property
    def broke_off(self) -> bool:
        """A stream that ended before the answer; a success without a body is an answer."""
        return self.failure == "no_response" and self.content_type.startswith("text/event-stream")

    def anybodys(self) -> Evidence | None:
        """What a gateway may have said as well as the server, whatever the body is."""
        if self.status == 401:
            return self.evidence(EvidenceKind.HTTP_LOGIN)
        if self.status == 403:
            return self.evidence(EvidenceKind.HTTP_FORBIDDEN)
        return self.evidence(EvidenceKind.HTTP_FAILED) if self.status >= 500 else None

    def no_answer(self) -> Evidence | None:
        """What remains no answer where the body did not say otherwise."""
        if self.failure == "redirect" or 300 <= self.status < 400:
            return self.evidence(EvidenceKind.HTTP_REDIRECTED)
        if self.status == 429:
            return self.evidence(EvidenceKind.HTTP_RATE_LIMITED)
        if self.status < 200 or self.status == 408 or self.broke_off:
            return self.evidence(EvidenceKind.HTTP_FAILED)
        unread = self.failure in ("encoding", "too_large")
        return self.evidence(EvidenceKind.HTTP_FAILED) if unread else None

    def evidence(self, kind: EvidenceKind, *, problem: str = "") -> Evidence:
        code = self.message.code if isinstance(self.message, Error | Broken) else None
        return self.told(
            Evidence(
                kind=kind,
                step=self.step,
                version=self.seen.version,
                rpc_code=code,
                excerpt=self.seen.excerpt,
                elapsed_ms=self.seen.elapsed_ms,
                timeout_ms=self.seen.timeout_ms,
                late=self.seen.late,
                problem=problem or self.problem,
            )
        )

    def told(self, judged: Evidence) -> Evidence:
        """With what HTTP adds to it."""
        return msgspec.structs.replace(
            judged,
            step=self.step,
            http_status=self.status or None,
            content_type=self.content_type or None,
        )
