"""The table of eras behind a URL, and the promise on every path of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.decisions.era import Permission, cause_of, first_phase, step
from observant_host.decisions.era_http import AMBIGUOUS, CAUSES, FIRST, HTTP
from observant_host.decisions.era_table import SENDS_INITIALIZE, Do, Phase
from observant_host.decisions.evidence import Evidence, Seen, Silence
from observant_host.decisions.evidence_http import (
    HttpReply,
    judge_get_sse,
    judge_http_discover,
    judge_http_initialize,
)
from observant_host.decisions.evidence_kinds import ONLY_PIPES, PROVE_MODERN, EvidenceKind
from observant_host.decisions.terms import Cause, Reason
from observant_host.errors import HttpFailure
from observant_host.wire.jsonrpc import Error
from tests.decisions.era_paths import every_path

K = EvidenceKind
SEEN = Seen(version="2026-07-28", timeout_ms=30_000)
ALL = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
EVERY_PATH = every_path(HTTP)
PERMITTING = {Phase.PROBING_ALLOWED, Phase.PROBING_ALLOWED_SSE, Phase.OPENING_SSE}
PROBING = set(FIRST) - {Phase.OPENING_SSE}
INITIALIZING = (Phase.INITIALIZING, Phase.INITIALIZING_OR_SSE, Phase.INITIALIZING_SSE)


def evidence(kind: EvidenceKind) -> Evidence:
    return Evidence(kind=kind, step="initialize" if kind.startswith("init") else "discover")


def refused(status: int, body: bytes = b"") -> HttpFailure:
    return HttpFailure("no", kind="status", url="http://h/mcp", status=status, body=body)


# Where a round begins


def test_only_a_granted_permission_leads_to_a_phase_that_may_send_initialize() -> None:
    for permission in Permission:
        for transport in ("http", "sse"):
            for proven in (False, True):
                for shown in (False, True):
                    for sse in (False, True):
                        phase = first_phase(
                            permission,
                            proven=proven,
                            shown_modern=shown,
                            transport=transport,
                            sse_allowed=sse,
                        )
                        assert phase in FIRST
                        granted = permission is Permission.GRANTED and not shown
                        assert (phase in PERMITTING) == granted
                        assert sse or phase not in (Phase.PROBING_ALLOWED_SSE, Phase.OPENING_SSE)
                        assert transport == "sse" or phase is not Phase.OPENING_SSE


@pytest.mark.parametrize(
    ("transport", "sse", "phase"),
    [
        ("http", False, Phase.PROBING_ALLOWED),
        ("http", True, Phase.PROBING_ALLOWED_SSE),
        ("sse", False, Phase.PROBING_ALLOWED),
        ("sse", True, Phase.OPENING_SSE),
    ],
)
def test_http_sse_has_its_place_only_where_its_revision_is_allowed(
    transport: str, sse: bool, phase: Phase
) -> None:
    for proven in (False, True):
        began = first_phase(Permission.GRANTED, proven=proven, transport=transport, sse_allowed=sse)
        assert began is phase
    assert first_phase(Permission.GRANTED, sse_allowed=True) is Phase.PROBING_ALLOWED


def test_a_life_whose_initialize_failed_has_ended_and_is_never_probed_again() -> None:
    phase = first_phase(Permission.GRANTED, initialize_sent=True, transport="http")
    with pytest.raises(KeyError):
        step(phase, evidence(K.HTTP_ERROR), transport="http")


# The promise, on every path


def test_nothing_that_is_no_answer_leads_to_initialize_on_any_path() -> None:
    for paths in EVERY_PATH.values():
        for path in paths:
            for at, (_, kind, _) in enumerate(path):
                if kind in CAUSES:
                    assert at == len(path) - 1, path
                    assert path[at][2] in (Do.REFUSE, Do.END_LIFE), path


def test_initialize_is_posted_only_after_an_answer_that_proves_neither_era() -> None:
    for phase, paths in EVERY_PATH.items():
        for path in paths:
            for _, kind, do in path:
                if do in SENDS_INITIALIZE:
                    assert phase in PERMITTING
                    assert kind in AMBIGUOUS or kind is K.SSE_OPENED, path


def test_a_get_is_sent_only_after_two_refused_posts_where_2024_11_05_is_allowed() -> None:
    for phase, paths in EVERY_PATH.items():
        for path in paths:
            kinds = [kind for _, kind, _ in path]
            actions = [do for _, _, do in path]
            if Do.TRY_SSE in actions:
                at = actions.index(Do.TRY_SSE)
                assert phase is Phase.PROBING_ALLOWED_SSE, path
                assert kinds[: at + 1] == [K.HTTP_REFUSED, K.INITIALIZE_REFUSED], path
                assert actions.count(Do.TRY_SSE) == 1, path


def test_initialize_is_sent_once_for_each_transport_and_at_most_twice() -> None:
    for paths in EVERY_PATH.values():
        for path in paths:
            actions = [do for _, _, do in path]
            sent = sum(do in SENDS_INITIALIZE for do in actions)
            assert sent <= 1 + actions.count(Do.TRY_SSE), path


def test_no_path_takes_what_only_a_pipe_can_show() -> None:
    assert not {kind for _, kind in HTTP.rows} & ONLY_PIPES


# The rows


@pytest.mark.parametrize(
    ("phase", "reasons"),
    [
        (Phase.PROBING, AMBIGUOUS),
        (Phase.RETRYING, AMBIGUOUS),
        (Phase.PROBING_REFUSED, dict.fromkeys(AMBIGUOUS, Reason.WAS_MODERN)),
        (Phase.PROBING_EXPIRED, dict.fromkeys(AMBIGUOUS, Reason.ALLOWANCE_EXPIRED)),
        (Phase.PROBING_MISMATCH, dict.fromkeys(AMBIGUOUS, Reason.ALLOWANCE_MISMATCH)),
    ],
)
def test_without_a_standing_allowance_ambiguous_answers_refuse(
    phase: Phase, reasons: dict[EvidenceKind, Reason]
) -> None:
    for kind, reason in reasons.items():
        assert HTTP.rows[phase, kind] == (Do.REFUSE, Phase.UNAVAILABLE, reason)
        assert cause_of(reason, transport="http", kind=kind) is Cause.POLICY


def test_with_an_allowance_every_ambiguous_answer_leads_to_one_initialize() -> None:
    for phase in (Phase.PROBING_ALLOWED, Phase.PROBING_ALLOWED_SSE):
        for kind, reason in AMBIGUOUS.items():
            maybe_sse = phase is Phase.PROBING_ALLOWED_SSE and kind is K.HTTP_REFUSED
            after = Phase.INITIALIZING_OR_SSE if maybe_sse else Phase.INITIALIZING
            assert HTTP.rows[phase, kind] == (Do.INITIALIZE, after, reason)


EVERY_CAUSE = [
    (refused(401), Reason.AUTH_REQUIRED, Cause.AUTH),
    (refused(403), Reason.FORBIDDEN, Cause.AUTH),
    (refused(408), Reason.HTTP_UNAVAILABLE, Cause.NETWORK),
    (refused(429), Reason.RATE_LIMITED, Cause.NETWORK),
    (refused(500), Reason.HTTP_UNAVAILABLE, Cause.NETWORK),
    (refused(503), Reason.HTTP_UNAVAILABLE, Cause.NETWORK),
    (HttpFailure("", kind="redirect", url="", status=302), Reason.HTTP_UNAVAILABLE, Cause.CONFIG),
    (HttpFailure("", kind="refused", url="", sent=False), Reason.UNREACHABLE, Cause.NETWORK),
    (HttpFailure("", kind="reset", url=""), Reason.UNREACHABLE, Cause.NETWORK),
    (HttpFailure("", kind="dns", url="", sent=False), Reason.UNREACHABLE, Cause.NETWORK),
    (HttpFailure("", kind="tls", url="", sent=False), Reason.UNREACHABLE, Cause.NETWORK),
    (HttpFailure("", kind="timeout", url="", sent=False), Reason.UNREACHABLE, Cause.NETWORK),
    (HttpFailure("", kind="credentials", url="", sent=False), Reason.AUTH_REQUIRED, Cause.AUTH),
    (Silence(), Reason.UNREACHABLE, Cause.NETWORK),
]


@pytest.mark.parametrize("phase", sorted(PROBING | {Phase.RETRYING}))
@pytest.mark.parametrize(("answer", "reason", "cause"), EVERY_CAUSE)
def test_a_cause_is_named_and_refuses_whatever_is_allowed(
    phase: Phase, answer: HttpFailure | Silence, reason: Reason, cause: Cause
) -> None:
    decided = step(phase, judge_http_discover(answer, seen=SEEN), transport="http")
    assert (decided.do, decided.after, decided.reason) == (Do.REFUSE, Phase.UNAVAILABLE, reason)
    told = cause_of(reason, transport="http", proven=True, kind=decided.evidence.kind)
    assert told is cause


@pytest.mark.parametrize("phase", INITIALIZING)
@pytest.mark.parametrize(
    ("answer", "reason", "cause"),
    [each for each in EVERY_CAUSE if not isinstance(each[0], Silence) and each[0].sent]
    + [
        (Silence(), Reason.LEGACY_PROBE_TIMEOUT, Cause.NETWORK),
        (HttpFailure("", kind="timeout", url=""), Reason.LEGACY_PROBE_TIMEOUT, Cause.NETWORK),
        (HttpFailure("", kind="refused", url=""), Reason.LEGACY_PROBE_CLOSED, Cause.NETWORK),
        (refused(422), Reason.LEGACY_PROBE_ERROR, Cause.PROTOCOL),
    ],
)
def test_a_failed_initialize_ends_the_life_and_never_goes_on_to_a_get(
    phase: Phase, answer: HttpFailure | Silence, reason: Reason, cause: Cause
) -> None:
    if isinstance(answer, HttpFailure) and answer.kind == "reset":
        reason = Reason.LEGACY_PROBE_CLOSED
    judged = judge_http_initialize(answer, seen=SEEN, allowed=ALL)
    decided = step(phase, judged, transport="http")
    assert (decided.do, decided.after, decided.reason) == (Do.END_LIFE, Phase.ENDED, reason)
    assert cause_of(reason, transport="http", kind=judged.kind) is cause


@pytest.mark.parametrize("phase", INITIALIZING)
@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_refused_initialize_goes_on_to_a_get_only_where_both_were_refused(
    phase: Phase, status: int
) -> None:
    judged = judge_http_initialize(refused(status), seen=SEEN, allowed=ALL)
    decided = step(phase, judged, transport="http")
    maybe = phase is Phase.INITIALIZING_OR_SSE
    assert decided.do is (Do.TRY_SSE if maybe else Do.END_LIFE)
    assert decided.after is (Phase.OPENING_SSE if maybe else Phase.ENDED)
    assert decided.reason is Reason.LEGACY_PROBE_ERROR


@pytest.mark.parametrize(
    ("answer", "do", "reason"),
    [
        ("", Do.INITIALIZE, Reason.AMBIGUOUS_ERROR),
        ("the endpoint is on another origin", Do.END_LIFE, Reason.LEGACY_PROBE_INVALID),
        (Silence(), Do.END_LIFE, Reason.LEGACY_PROBE_TIMEOUT),
        (HttpFailure("", kind="no_response", url="", status=200), Do.END_LIFE, "closed"),
        (HttpFailure("", kind="content", url="", status=200), Do.END_LIFE, "invalid"),
        (refused(404), Do.END_LIFE, Reason.LEGACY_PROBE_ERROR),
        (refused(401), Do.END_LIFE, Reason.AUTH_REQUIRED),
        (refused(502), Do.END_LIFE, Reason.HTTP_UNAVAILABLE),
        (HttpFailure("", kind="dns", url=""), Do.END_LIFE, Reason.UNREACHABLE),
        (HttpFailure("", kind="timeout", url=""), Do.END_LIFE, Reason.UNREACHABLE),
        (
            refused(400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":""}}'),
            Do.END_LIFE,
            Reason.LATE_MODERN_EVIDENCE,
        ),
    ],
)
def test_only_an_endpoint_of_the_same_origin_is_asked_to_initialize(
    answer: str | HttpFailure | Silence, do: Do, reason: str
) -> None:
    decided = step(Phase.OPENING_SSE, judge_get_sse(answer, seen=SEEN), transport="sse")
    assert decided.do is do
    assert decided.reason.endswith(reason)
    assert decided.after is (Phase.INITIALIZING_SSE if do is Do.INITIALIZE else Phase.ENDED)


# No error code is special but three


@given(
    st.integers(400, 499).filter(lambda status: status not in (401, 403, 408, 429)) | st.just(200),
    st.integers() | st.sampled_from([-32700, -32600, -32601, -32602, -32603, -32001, -32004, 0]),
    st.sampled_from(sorted(PROBING)),
)
def test_no_other_code_changes_what_is_decided(status: int, code: int, phase: Phase) -> None:
    judged = judge_http_discover(HttpReply(message=Error(1, code, ""), status=status), seen=SEEN)
    plain = judge_http_discover(HttpReply(message=Error(1, 0, ""), status=status), seen=SEEN)
    if code in (-32020, -32021, -32022):
        assert judged.kind is K.MODERN_ERROR
        return
    assert judged.kind not in PROVE_MODERN
    decided, other = (step(phase, each, transport="http") for each in (judged, plain))
    assert (decided.do, decided.reason) == (other.do, other.reason)
    if decided.after is not other.after:
        assert (status, code) == (404, -32601)  # never on to a GET
        assert decided.after is Phase.INITIALIZING


@given(st.sampled_from(sorted(PROBING)), st.sampled_from([401, 403, 500, 502, 503, 504, 599]))
def test_a_recognised_code_under_a_gateways_status_proves_nothing(
    phase: Phase, status: int
) -> None:
    for code in (-32020, -32021, -32022):
        reply = HttpReply(message=Error(1, code, ""), status=status)
        judged = judge_http_discover(reply, seen=SEEN)
        assert not judged.proves_modern
        assert step(phase, judged, transport="http").do is Do.REFUSE
