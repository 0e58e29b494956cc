from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.decisions.evidence import Evidence, Seen, Silence
from observant_host.decisions.evidence_http import (
    HttpReply,
    judge_get_sse,
    judge_http_discover,
    judge_http_initialize,
)
from observant_host.decisions.evidence_kinds import PROVE_MODERN, EvidenceKind
from observant_host.errors import HttpFailure, HttpFailureKind
from observant_host.wire.jsonrpc import Broken, Error, Result
from tests.support.many import for_each

K = EvidenceKind
SEEN = Seen(
    version="2026-07-28", excerpt="what came", elapsed_ms=12.5, timeout_ms=30_000.0, late=True
)
DISCOVERED = Raw(b'{"supportedVersions":["2026-07-28"],"capabilities":{}}')
LEGACY_ONLY = Raw(b'{"supportedVersions":["2025-11-25"],"capabilities":{}}')
INITIALIZED = Raw(
    b'{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
)
ALLOWED = ("2025-11-25", "2025-06-18")
OTHER_4XX = [402, 406, 409, 410, 415, 422, 451, 499]


def failed(
    kind: HttpFailureKind = "status", status: int | None = None, body: bytes = b""
) -> HttpFailure:
    return HttpFailure(
        "a sentence", kind=kind, url="http://h/mcp", status=status, body=body, content_type="a/b"
    )


def error(code: int, *, request_id: str = "1") -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"m"}}' % (
        request_id.encode(),
        code,
    )


def discover(answer: HttpReply | HttpFailure | Silence) -> Evidence:
    return judge_http_discover(answer, seen=SEEN)


def initialize(answer: HttpReply | HttpFailure | Silence) -> Evidence:
    return judge_http_initialize(answer, seen=SEEN, allowed=ALLOWED)


# server/discover


def test_what_was_seen_is_kept_with_what_http_adds() -> None:
    reply = HttpReply(message=Error(1, -32601, "m"), status=404, content_type="application/json")
    assert discover(reply).to_dict() == {
        "step": "discover",
        "version": "2026-07-28",
        "outcome": "http_candidate",
        "rpc_code": -32601,
        "http_status": 404,
        "content_type": "application/json",
        "excerpt": "what came",
        "elapsed_ms": 12.5,
        "timeout_ms": 30_000.0,
        "late": True,
    }
    modern = discover(HttpReply(message=Result(1, DISCOVERED), content_type="text/event-stream"))
    assert (modern.http_status, modern.content_type) == (200, "text/event-stream")
    assert (modern.outcome, modern.chosen) == ("ok", "2026-07-28")
    silent = discover(Silence())
    assert (silent.outcome, silent.http_status, silent.content_type) == ("timeout", None, None)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (Result(1, DISCOVERED), K.DISCOVER_OK),
        (Result(1, LEGACY_ONLY), K.DISCOVER_LEGACY_ONLY),
        (Error(1, -32020, ""), K.MODERN_ERROR),
        (Error(1, -32022, "", Raw(b'{"supported":["2026-07-28"]}')), K.VERSION_MUTUAL),
        (Broken(1, "both", -32021), K.MODERN_ERROR),
        (Error(1, -32601, ""), K.HTTP_ERROR),
        (Error(None, -32600, ""), K.HTTP_ERROR),
        (Error(1, 0, ""), K.HTTP_ERROR),
        (Result(1, Raw(b"{}")), K.HTTP_MALFORMED),
        (Result(1, Raw(b"null")), K.HTTP_MALFORMED),
        (Result(1, Raw(b'{"tools":[]}')), K.HTTP_MALFORMED),
        (Broken(1, "both"), K.HTTP_MALFORMED),
    ],
)
def test_a_success_is_judged_by_its_message(
    message: Result | Error | Broken, kind: EvidenceKind
) -> None:
    assert discover(HttpReply(message=message)).kind is kind


def test_a_result_under_an_id_that_only_resembles_ours_proves_nothing() -> None:
    judged = discover(HttpReply(message=Result("1", DISCOVERED), paired=False))
    assert judged.kind is K.HTTP_MALFORMED
    assert "id" in judged.problem
    coded = discover(HttpReply(message=Error("1", -32022, ""), paired=False))
    assert coded.kind is K.MODERN_ERROR


OWN_STATUSES = (400, 402, 404, 405, 408, 422, 429, 302, 200)
CODES = (-32020, -32021, -32022)


@for_each({str(one): one for one in product(OWN_STATUSES, CODES, ["1", "null", '"1"', "7"])})
def test_a_recognised_code_is_modern_at_any_status_of_the_servers_own(
    status: int, code: int, request_id: str
) -> None:
    body = error(code, request_id=request_id)
    judged = discover(failed(status=status, body=body))
    assert judged.kind is K.MODERN_ERROR
    assert (judged.http_status, judged.rpc_code) == (status, code)
    assert initialize(failed(status=status, body=body)).kind is K.INITIALIZE_MODERN


@pytest.mark.parametrize("status", [401, 403, 500, 503, 599])
@pytest.mark.parametrize("body", [error(-32022), b"", b"<html>"])
def test_a_status_that_a_gateway_may_give_proves_nothing_whatever_the_body(
    status: int, body: bytes
) -> None:
    kind = {401: K.HTTP_LOGIN, 403: K.HTTP_FORBIDDEN}.get(status, K.HTTP_FAILED)
    for answer in (failed(status=status, body=body), failed("redirect", status, body)):
        for judged in (discover(answer), initialize(answer)):
            assert judged.kind is kind
            assert not judged.proves_modern
    assert judge_get_sse(failed(status=status, body=body), seen=SEEN).kind is kind


@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  \n",
        b"<h1>Not Found</h1>",
        b"[]",
        b'{"error":"x"}',
        error(-32000),
        error(-32000, request_id="null"),
        error(-32600),
        error(-32602),
        error(-32001),
        error(-32004),
        b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    ],
)
def test_a_refusal_of_the_endpoint_is_a_candidate_that_may_lead_to_http_sse(
    status: int, body: bytes
) -> None:
    judged = discover(failed(status=status, body=body))
    assert (judged.kind, judged.outcome) == (K.HTTP_REFUSED, "http_candidate")
    answered = initialize(failed(status=status, body=body))
    assert (answered.kind, answered.outcome) == (K.INITIALIZE_REFUSED, "error")


def test_404_with_method_not_found_never_leads_to_http_sse() -> None:
    for request_id in ("1", "null"):
        answer = failed(status=404, body=error(-32601, request_id=request_id))
        assert discover(answer).kind is K.HTTP_ERROR
        assert initialize(answer).kind is K.INITIALIZE_ERROR
    for status in (400, 405):
        assert discover(failed(status=status, body=error(-32601))).kind is K.HTTP_REFUSED
    reply = HttpReply(message=Error(1, -32601, ""), status=404)
    assert discover(reply).kind is K.HTTP_ERROR


@pytest.mark.parametrize("status", OTHER_4XX)
def test_any_other_refusal_is_a_candidate(status: int) -> None:
    assert discover(failed(status=status)).kind is K.HTTP_ERROR
    assert discover(failed("session_lost", status)).kind is K.HTTP_ERROR
    assert initialize(failed(status=status)).kind is K.INITIALIZE_ERROR
    assert judge_get_sse(failed(status=status), seen=SEEN).kind is K.SSE_REFUSED


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (408, K.HTTP_FAILED),
        (429, K.HTTP_RATE_LIMITED),
        (304, K.HTTP_REDIRECTED),
        (302, K.HTTP_REDIRECTED),
        (101, K.HTTP_FAILED),
        (None, K.HTTP_FAILED),
    ],
)
def test_what_is_no_answer_is_no_evidence(status: int | None, kind: EvidenceKind) -> None:
    for body in (b"", error(-32601)):
        answer = failed(status=status, body=body)
        assert discover(answer).kind is kind
        assert initialize(answer).kind is kind
        assert judge_get_sse(answer, seen=SEEN).kind is kind
    assert discover(failed("redirect")).kind is K.HTTP_REDIRECTED


@pytest.mark.parametrize(
    ("kind", "content_type", "body", "judged"),
    [
        ("content", "text/html", b"<html>login", K.HTTP_MALFORMED),
        ("content", "application/json", b"{cut", K.HTTP_MALFORMED),
        ("content", "application/json", b"", K.HTTP_EMPTY),
        ("content", "text/plain", error(-32601), K.HTTP_ERROR),
        ("no_response", "", b"", K.HTTP_EMPTY),
        ("no_response", "application/json", b"\r\n", K.HTTP_EMPTY),
        ("no_response", "text/event-stream", b"", K.HTTP_FAILED),
        ("encoding", "application/json", b"", K.HTTP_FAILED),
        ("too_large", "application/json", b"{", K.HTTP_FAILED),
    ],
)
def test_a_success_without_a_message_is_ambiguous_and_one_that_broke_off_is_an_outage(
    kind: HttpFailureKind, content_type: str, body: bytes, judged: EvidenceKind
) -> None:
    answer = HttpFailure("", kind=kind, url="", status=200, content_type=content_type, body=body)
    assert discover(answer).kind is judged


def test_a_modern_body_that_came_as_a_failure_is_modern_but_not_usable() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"result":%s}' % bytes(DISCOVERED)
    for answer in (
        failed(status=404, body=body),
        failed("content", 200, body),
        HttpReply(message=Result(1, DISCOVERED), status=404),
    ):
        judged = discover(answer)
        assert (judged.kind, judged.problem) == (
            K.MODERN_ERROR,
            "it is a valid answer, but it came as a failure",
        )


@pytest.mark.parametrize(
    ("kind", "judged"),
    [
        ("refused", K.HTTP_UNREACHABLE),
        ("dns", K.HTTP_UNREACHABLE),
        ("tls", K.HTTP_UNREACHABLE),
        ("timeout", K.HTTP_TIMEOUT),
        ("reset", K.HTTP_UNREACHABLE),
        ("credentials", K.HTTP_LOGIN),
    ],
)
def test_without_an_exchange_there_is_no_evidence(
    kind: HttpFailureKind, judged: EvidenceKind
) -> None:
    came = discover(failed(kind))
    assert came.kind is judged
    assert came.step == ("discover" if kind in ("reset", "credentials") else "connect")
    assert came.problem == "a sentence"
    assert came.outcome == ("timeout" if kind == "timeout" else "http_other")


# initialize


@pytest.mark.parametrize(
    ("answer", "kind", "outcome"),
    [
        (HttpReply(message=Result(1, INITIALIZED)), K.INITIALIZE_OK, "ok"),
        (HttpReply(message=Result(1, Raw(b"{}"))), K.INITIALIZE_INVALID, "invalid"),
        (
            HttpReply(message=Result("1", INITIALIZED), paired=False),
            K.INITIALIZE_INVALID,
            "invalid",
        ),
        (HttpReply(message=Error(1, -32602, "")), K.INITIALIZE_ERROR, "error"),
        (HttpReply(message=Error(1, -32022, "")), K.INITIALIZE_MODERN, "modern_evidence"),
        (HttpReply(message=Error(1, -32602, ""), status=400), K.INITIALIZE_REFUSED, "error"),
        (HttpReply(message=Error(1, -32601, ""), status=404), K.INITIALIZE_ERROR, "error"),
        (HttpReply(message=Result(1, INITIALIZED), status=404), K.INITIALIZE_REFUSED, "error"),
        (HttpReply(message=Result(1, INITIALIZED), status=422), K.INITIALIZE_ERROR, "error"),
        (failed("content", 200, b"<html>"), K.INITIALIZE_INVALID, "invalid"),
        (failed("content", 202), K.INITIALIZE_INVALID, "invalid"),
        (failed("no_response", 200), K.INITIALIZE_INVALID, "invalid"),
        (failed("encoding", 200), K.HTTP_FAILED, "error"),
        (failed("too_large", 200), K.HTTP_FAILED, "error"),
        (failed("redirect", 302), K.HTTP_REDIRECTED, "error"),
        (failed("credentials"), K.HTTP_LOGIN, "error"),
        (failed(status=401), K.HTTP_LOGIN, "error"),
        (failed(status=403), K.HTTP_FORBIDDEN, "error"),
        (failed(status=429), K.HTTP_RATE_LIMITED, "error"),
        (failed(status=503), K.HTTP_FAILED, "error"),
        (failed("refused"), K.INITIALIZE_CLOSED, "closed"),
        (failed("dns"), K.INITIALIZE_CLOSED, "closed"),
        (failed("tls"), K.INITIALIZE_CLOSED, "closed"),
        (failed("reset"), K.INITIALIZE_CLOSED, "closed"),
        (failed("timeout"), K.INITIALIZE_TIMEOUT, "timeout"),
        (Silence(), K.INITIALIZE_TIMEOUT, "timeout"),
    ],
)
def test_the_answer_to_initialize_is_judged_by_status_and_message(
    answer: HttpReply | HttpFailure | Silence, kind: EvidenceKind, outcome: str
) -> None:
    judged = initialize(answer)
    assert (judged.kind, judged.outcome, judged.step) == (kind, outcome, "initialize")


def test_a_stream_that_ends_before_the_answer_to_initialize_is_its_end() -> None:
    answer = HttpFailure(
        "ended", kind="no_response", url="", status=200, content_type="text/event-stream"
    )
    judged = initialize(answer)
    assert (judged.kind, judged.problem) == (K.INITIALIZE_CLOSED, "ended")


def test_an_initialize_result_must_name_an_allowed_revision_and_come_as_an_answer() -> None:
    reply = HttpReply(message=Result(1, INITIALIZED))
    judged = judge_http_initialize(reply, seen=SEEN, allowed=("2025-11-25",))
    assert judged.kind is K.INITIALIZE_REVISION
    body = b'{"jsonrpc":"2.0","id":1,"result":%s}' % bytes(INITIALIZED)
    misplaced = initialize(failed("content", 200, body))
    assert misplaced.kind is K.INITIALIZE_INVALID
    assert "came as a failure" in misplaced.problem


# The GET for HTTP+SSE


@pytest.mark.parametrize(
    ("answer", "kind", "outcome"),
    [
        ("", K.SSE_OPENED, "ok"),
        ("its first event is `message`", K.SSE_INVALID, "invalid"),
        (Silence(), K.SSE_TIMEOUT, "timeout"),
        (failed("refused"), K.HTTP_UNREACHABLE, "closed"),
        (failed("dns"), K.HTTP_UNREACHABLE, "closed"),
        (failed("tls"), K.HTTP_UNREACHABLE, "closed"),
        (failed("timeout"), K.HTTP_TIMEOUT, "timeout"),
        (failed("reset", 200), K.SSE_CLOSED, "closed"),
        (failed("no_response", 200), K.SSE_CLOSED, "closed"),
        (failed("content", 200, b"<html>"), K.SSE_INVALID, "invalid"),
        (failed("encoding", 200), K.SSE_INVALID, "invalid"),
        (failed("too_large", 200), K.SSE_INVALID, "invalid"),
        (failed("redirect", 302), K.HTTP_REDIRECTED, "error"),
        (failed("credentials"), K.HTTP_LOGIN, "error"),
        (failed(status=401), K.HTTP_LOGIN, "error"),
        (failed(status=404), K.SSE_REFUSED, "error"),
        (failed(status=405, body=error(-32601)), K.SSE_REFUSED, "error"),
        (failed(status=405, body=error(-32022)), K.MODERN_ERROR, "modern_evidence"),
        (failed(status=429), K.HTTP_RATE_LIMITED, "error"),
        (failed(status=500), K.HTTP_FAILED, "error"),
    ],
)
def test_what_came_of_the_get(
    answer: str | HttpFailure | Silence, kind: EvidenceKind, outcome: str
) -> None:
    judged = judge_get_sse(answer, seen=SEEN)
    assert (judged.kind, judged.outcome, judged.step) == (kind, outcome, "get_sse")


# Whatever comes


@given(
    st.sampled_from(get_args(HttpFailureKind)),
    st.integers(100, 599) | st.none(),
    st.binary(max_size=60) | st.integers(-33000, 0).map(error),
)
def test_only_a_recognised_code_or_a_discover_result_proves_a_modern_server(
    kind: HttpFailureKind, status: int | None, body: bytes
) -> None:
    answer = failed(kind, status, body)
    coded = any(str(code).encode() in body for code in (-32020, -32021, -32022))
    for judged in (discover(answer), initialize(answer), judge_get_sse(answer, seen=SEEN)):
        assert (judged.kind in PROVE_MODERN) <= (coded and status not in (401, 403))
        assert judged.kind not in (K.DISCOVER_OK, K.INITIALIZE_OK, K.SSE_OPENED)
        judged.to_dict()
