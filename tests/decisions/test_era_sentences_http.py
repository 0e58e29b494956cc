"""The sentences about servers behind a URL: an address to look at, and no command."""

from __future__ import annotations

import pytest

from observant_host.decisions.era import Permission, first_phase, step
from observant_host.decisions.era_http import HTTP
from observant_host.decisions.era_sentences import sentence
from observant_host.decisions.era_table import Phase
from observant_host.decisions.evidence import Evidence, Seen, Silence
from observant_host.decisions.evidence_http import (
    HttpReply,
    judge_get_sse,
    judge_http_discover,
    judge_http_initialize,
)
from observant_host.decisions.terms import Reason
from observant_host.errors import HttpFailure
from observant_host.wire.jsonrpc import Error

SEEN = Seen(version="2026-07-28", timeout_ms=30_000.0)
URL = "https://mcp.example/mcp"
SUCCESSES = {Reason.DISCOVER_OK, Reason.INITIALIZE_OK, Reason.MODERN_ERROR_RETRY}
NEXT_STEPS = ("`observant-host ", "[servers.archive]", "Update")


def refused(status: int, said: str = "", content_type: str = "application/json") -> HttpFailure:
    return HttpFailure(
        f"{URL} answered {status}: {said}",
        kind="status",
        url=URL,
        status=status,
        content_type=content_type,
        body=said.encode(),
    )


def told(*evidence: Evidence, reason: Reason, proven: bool = False) -> str:
    return sentence(reason, server="archive", evidence=evidence, proven=proven)


@pytest.mark.parametrize("reason", sorted({reason for _, _, reason in HTTP.rows.values()}))
def test_every_reason_over_http_names_a_next_step_and_no_command_of_a_process(
    reason: Reason,
) -> None:
    for answer in (refused(404, "tok-canary"), Silence(), HttpFailure("x", kind="dns", url=URL)):
        judged = judge_http_discover(answer, seen=SEEN)
        for proven in (False, True):
            text = told(judged, reason=reason, proven=proven)
            assert text.startswith("archive ")
            assert text.endswith(".")
            assert "{" not in text
            assert "tok-canary" not in text
            assert "its command" not in text
            assert len(text) < 900
            if reason not in SUCCESSES:
                assert any(step in text for step in NEXT_STEPS)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (refused(404, content_type="text/html; charset=utf-8"), "(HTTP 404, text/html"),
        (refused(405, content_type=""), "(HTTP 405)"),
        (refused(400, '{"jsonrpc":"2.0","id":1,"error":{"code":-32000}}'), "(HTTP 400, -32000)"),
        (HttpReply(message=Error(1, -32601, "m")), "(HTTP 200, -32601)"),
    ],
)
def test_the_status_the_code_and_an_odd_type_are_told(
    answer: HttpFailure | HttpReply, code: str
) -> None:
    text = told(judge_http_discover(answer, seen=SEEN), reason=Reason.AMBIGUOUS_ERROR)
    assert f"answered server/discover with an error {code}" in text
    assert "`url` in [servers.archive]" in text
    assert "add `allow_legacy = true` to [servers.archive]" in text


def test_what_a_server_wrote_is_no_part_of_a_sentence() -> None:
    for answer in (
        refused(404, "canary"),
        refused(503, "canary", "text/html\x1b[2J"),
        HttpFailure("canary", kind="content", url=URL, status=200, body=b"canary"),
        HttpReply(message=Error(1, -32000, "canary"), content_type="canary" * 99),
    ):
        for judged in (
            judge_http_discover(answer, seen=SEEN),
            judge_http_initialize(answer, seen=SEEN, allowed=()),
        ):
            for reason in Reason:
                text = told(judged, reason=reason)
                assert "canary" not in text.replace("canary" * 5, "")
                assert "\x1b" not in text


def test_a_redirect_that_is_not_followed_names_both_addresses_and_the_key() -> None:
    answer = HttpFailure(
        f"{URL} redirects to https://elsewhere.example", kind="redirect", url=URL, status=307
    )
    text = told(judge_http_discover(answer, seen=SEEN), reason=Reason.HTTP_UNAVAILABLE)
    assert f"({URL} redirects to https://elsewhere.example)" in text
    assert "set `url` in [servers.archive]" in text


def test_silence_is_told_as_an_outage_and_a_host_that_is_not_found_as_such() -> None:
    silent = told(judge_http_discover(Silence(), seen=SEEN), reason=Reason.UNREACHABLE)
    assert "did not answer server/discover within 30 s" in silent
    assert "allow_legacy" not in silent
    unknown = HttpFailure("its host name is not known", kind="dns", url=URL, sent=False)
    missing = told(judge_http_discover(unknown, seen=SEEN), reason=Reason.UNREACHABLE)
    assert "cannot be reached (its host name is not known)" in missing
    slow = HttpFailure("no connection within 10 s", kind="timeout", url=URL, sent=False)
    connecting = told(judge_http_discover(slow, seen=SEEN), reason=Reason.UNREACHABLE)
    assert "cannot be reached (no connection within 10 s)" in connecting


def test_credentials_that_could_not_be_had_are_told_with_the_login() -> None:
    answer = HttpFailure("its headers_command ended with 1", kind="credentials", url=URL)
    text = told(judge_http_discover(answer, seen=SEEN), reason=Reason.AUTH_REQUIRED)
    assert "wants a login (its headers_command ended with 1)" in text
    assert "`headers` of [servers.archive]" in text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refused(405), "stream (HTTP 405) within 30 s"),
        ("the endpoint is at https://other.example", "(the endpoint is at https://other.example)"),
        (Silence(), "stream within 30 s"),
        (HttpFailure("it ended", kind="no_response", url=URL, status=200), "(it ended)"),
    ],
)
def test_a_get_that_found_no_stream_is_told_as_that(
    answer: str | HttpFailure | Silence, said: str
) -> None:
    judged = judge_get_sse(answer, seen=SEEN)
    decided = step(Phase.OPENING_SSE, judged, transport="sse")
    text = told(judged, reason=decided.reason)
    assert text.startswith("archive gave no HTTP+SSE stream ")
    assert said in text
    login = judge_get_sse(refused(401), seen=SEEN)
    assert "wants a login (HTTP 401)" in told(login, reason=Reason.AUTH_REQUIRED)


def test_a_refused_initialize_says_what_http_sse_would_need() -> None:
    phase = first_phase(Permission.GRANTED, transport="http")
    probe = judge_http_discover(refused(405), seen=SEEN)
    after = step(phase, probe, transport="http").after
    answered = judge_http_initialize(refused(405), seen=SEEN, allowed=("2025-11-25",))
    decided = step(after, answered, transport="http")
    text = told(probe, answered, reason=decided.reason)
    assert "answered initialize with an error (HTTP 405)" in text
    assert "`allow_legacy` with 2024-11-05" in text


def test_after_an_exchange_over_http_silence_is_still_told_of_an_address() -> None:
    probe = judge_http_discover(refused(404), seen=SEEN)
    silent = judge_http_initialize(Silence(), seen=SEEN, allowed=())
    text = told(probe, silent, reason=Reason.LEGACY_PROBE_TIMEOUT)
    assert "none to initialize within 30 s" in text
    assert "check its `url`" in text


def test_what_a_refusal_asks_for_is_part_of_the_sentence() -> None:
    def asked(status: int, reason: Reason, **headers: object) -> str:
        failure = HttpFailure("x", kind="status", url=URL, status=status, **headers)  # type: ignore[arg-type] # two kinds of header
        return told(judge_http_discover(failure, seen=SEEN), reason=reason)

    metadata = "https://mcp.example/.well-known/oauth-protected-resource"
    text = asked(
        401, Reason.AUTH_REQUIRED, www_authenticate=f'Bearer resource_metadata="{metadata}"'
    )
    assert text.startswith(f"archive wants a login (HTTP 401) ({metadata} says who gives tokens")
    challenge = 'Bearer error="insufficient_scope", scope="admin"'
    text = asked(403, Reason.FORBIDDEN, www_authenticate=challenge)
    assert "(it says insufficient_scope, it asks for the scope admin)" in text
    text = asked(429, Reason.RATE_LIMITED, retry_after_s=3600.0)
    assert "(it asks for a pause of 3600 s)" in text
