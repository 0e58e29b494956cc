from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.decisions.era import (
    Permission,
    cause_of,
    direction_of,
    first_phase,
    step,
)
from observant_host.decisions.era_stdio import AMBIGUOUS, FIRST, STDIO
from observant_host.decisions.era_table import SENDS_INITIALIZE, Do, Phase
from observant_host.decisions.evidence import (
    Closed,
    Evidence,
    Seen,
    Silence,
    judge_discover,
    judge_initialize,
)
from observant_host.decisions.evidence_kinds import PROVE_MODERN, EvidenceKind
from observant_host.decisions.terms import Cause, Direction, Era, Reason
from observant_host.wire.jsonrpc import Broken, Error, Result
from observant_host.wire.revisions import MODERN_ERRORS
from tests.decisions.era_paths import every_path

K = EvidenceKind
SEEN = Seen(version="2026-07-28", timeout_ms=30_000)
PERMITTING = {Phase.PROBING_ALLOWED, Phase.PROBING_ALLOWED_PROVEN}


def evidence(kind: EvidenceKind) -> Evidence:
    return Evidence(kind=kind, step="initialize" if kind.startswith("init") else "discover")


EVERY_PATH = every_path(STDIO)


# The promise, on every path


def test_no_path_without_an_allowance_sends_initialize() -> None:
    for phase in set(FIRST) - PERMITTING:
        for path in EVERY_PATH[phase]:
            assert not any(do in SENDS_INITIALIZE for _, _, do in path), path


def test_only_a_granted_permission_leads_to_a_phase_that_may_send_initialize() -> None:
    for permission in Permission:
        for proven in (False, True):
            for shown in (False, True):
                for sent in (False, True):
                    phase = first_phase(
                        permission, proven=proven, shown_modern=shown, initialize_sent=sent
                    )
                    assert phase in FIRST
                    permitted = permission is Permission.GRANTED and not shown and not sent
                    assert (phase in PERMITTING) == permitted


def test_no_path_sends_two_initialize_not_even_to_two_processes() -> None:
    for phase in FIRST:
        for path in EVERY_PATH[phase]:
            assert sum(do in SENDS_INITIALIZE for _, _, do in path) <= 1, path


def test_with_an_allowance_every_ambiguous_answer_leads_to_one_initialize() -> None:
    for kind in AMBIGUOUS:
        do, _, _ = STDIO.rows[Phase.PROBING_ALLOWED, kind]
        expected = Do.RESPAWN_AND_INITIALIZE if kind is K.CLOSED else Do.INITIALIZE
        assert do is expected


def test_late_modern_evidence_ends_the_life_wherever_it_can_come() -> None:
    for phase in (Phase.INITIALIZING, Phase.INITIALIZE_SPENT, Phase.LEGACY):
        for kind in PROVE_MODERN - {K.INITIALIZE_MODERN}:
            row = STDIO.rows[phase, kind]
            assert row == (Do.END_LIFE, Phase.ENDED, Reason.LATE_MODERN_EVIDENCE)
    for phase in (Phase.INITIALIZING, Phase.INITIALIZING_FRESH, Phase.INITIALIZE_SPENT):
        row = STDIO.rows[phase, K.INITIALIZE_MODERN]
        assert row == (Do.END_LIFE, Phase.ENDED, Reason.LATE_MODERN_EVIDENCE)


# The rows, one by one, as the wire shows them

DISCOVERED = Raw(b'{"supportedVersions":["2026-07-28"],"capabilities":{}}')
LEGACY_ONLY = Raw(b'{"supportedVersions":["2025-11-25"],"capabilities":{}}')
FUTURE_ONLY = Raw(b'{"supportedVersions":["2027-01-01"],"capabilities":{}}')


def version_error(supported: str) -> Error:
    data = Raw(f'{{"supported":{supported},"requested":"2026-07-28"}}'.encode())
    return Error(1, -32022, "", data)


MODERN_ANSWERS = [
    (Result(1, DISCOVERED), Do.USE_MODERN, Reason.DISCOVER_OK),
    (Result(1, LEGACY_ONLY), Do.REFUSE, Reason.LEGACY_ONLY_ADVERTISED),
    (Result(1, FUTURE_ONLY), Do.REFUSE, Reason.NO_MUTUAL_VERSION),
    (version_error('["2027-01-01","2026-07-28"]'), Do.DISCOVER_AGAIN, Reason.MODERN_ERROR_RETRY),
    (version_error('["2025-11-25"]'), Do.REFUSE, Reason.LEGACY_ONLY_ADVERTISED),
    (version_error('["2027-01-01"]'), Do.REFUSE, Reason.NO_MUTUAL_VERSION),
    (version_error("[]"), Do.REFUSE, Reason.NO_MUTUAL_VERSION),
    (version_error('"2026-07-28"'), Do.REFUSE, Reason.MODERN_ERROR_UNFIXABLE),
    (version_error("[5]"), Do.REFUSE, Reason.MODERN_ERROR_UNFIXABLE),
    (Error(1, -32022, ""), Do.REFUSE, Reason.MODERN_ERROR_UNFIXABLE),
    (Error(1, -32020, ""), Do.REFUSE, Reason.MODERN_ERROR_UNFIXABLE),
    (Error(1, -32021, ""), Do.REFUSE, Reason.MODERN_ERROR_UNFIXABLE),
    (Broken(1, "both", -32022), Do.REFUSE, Reason.MODERN_ERROR_UNFIXABLE),
]


@pytest.mark.parametrize("phase", sorted(set(FIRST) - {Phase.INITIALIZE_SPENT}))
@pytest.mark.parametrize(("answer", "do", "reason"), MODERN_ANSWERS)
def test_modern_answers_are_the_same_whatever_is_allowed(
    phase: Phase, answer: Result | Error | Broken, do: Do, reason: Reason
) -> None:
    decided = step(phase, judge_discover(answer, seen=SEEN))
    assert (decided.do, decided.reason) == (do, reason)
    assert decided.evidence.proves_modern


AMBIGUOUS_ANSWERS = [
    (Silence(), Reason.AMBIGUOUS_TIMEOUT, Cause.POLICY),
    (Silence(noise=True), Reason.AMBIGUOUS_MALFORMED, Cause.POLICY),
    (Closed(), Reason.AMBIGUOUS_CLOSED, Cause.PROCESS),
    (Error(1, -32601, ""), Reason.AMBIGUOUS_ERROR, Cause.POLICY),
    (Error(None, -32603, ""), Reason.AMBIGUOUS_ERROR, Cause.POLICY),
    (Error(1, 0, ""), Reason.AMBIGUOUS_ERROR, Cause.POLICY),
    (Result(1, Raw(b"{}")), Reason.AMBIGUOUS_EMPTY, Cause.POLICY),
    (Result(1, Raw(b"null")), Reason.AMBIGUOUS_EMPTY, Cause.POLICY),
    (Result(1, Raw(b'{"tools":[]}')), Reason.AMBIGUOUS_MALFORMED, Cause.POLICY),
    (Broken(1, "both"), Reason.AMBIGUOUS_MALFORMED, Cause.POLICY),
]


@pytest.mark.parametrize(("answer", "reason", "cause"), AMBIGUOUS_ANSWERS)
@pytest.mark.parametrize("phase", [Phase.PROBING, Phase.RETRYING])
def test_without_an_allowance_ambiguous_answers_refuse(
    phase: Phase, answer: Silence | Closed | Error | Result | Broken, reason: Reason, cause: Cause
) -> None:
    decided = step(phase, judge_discover(answer, seen=SEEN))
    assert (decided.do, decided.after, decided.reason) == (Do.REFUSE, Phase.UNAVAILABLE, reason)
    assert cause_of(reason) is cause


def test_a_second_version_error_is_unfixable_whatever_it_lists() -> None:
    for supported in ('["2026-07-28"]', '["2025-11-25"]', '["2027-01-01"]', "5"):
        decided = step(Phase.RETRYING, judge_discover(version_error(supported), seen=SEEN))
        assert decided.reason is Reason.MODERN_ERROR_UNFIXABLE
        assert decided.do is Do.REFUSE


def test_a_timeout_after_modern_evidence_is_an_outage() -> None:
    decided = step(Phase.RETRYING, judge_discover(Silence(), seen=SEEN))
    assert decided.reason is Reason.AMBIGUOUS_TIMEOUT
    assert cause_of(decided.reason, proven=True) is Cause.PROCESS


@pytest.mark.parametrize(
    ("permission", "reason"),
    [
        (Permission.EXPIRED, Reason.ALLOWANCE_EXPIRED),
        (Permission.MISMATCH, Reason.ALLOWANCE_MISMATCH),
        (Permission.REFUSED, Reason.WAS_MODERN),
    ],
)
def test_an_allowance_that_does_not_stand_or_not_help_is_named_as_the_reason(
    permission: Permission, reason: Reason
) -> None:
    for proven in (False, True):
        phase = first_phase(permission, proven=proven)
        for kind in AMBIGUOUS:
            decided = step(phase, evidence(kind))
            outage = kind is K.TIMEOUT and (proven or permission is Permission.REFUSED)
            assert decided.reason is (Reason.AMBIGUOUS_TIMEOUT if outage else reason)
            assert decided.do is Do.REFUSE
    assert cause_of(reason) is Cause.POLICY


def test_silence_of_a_server_proven_modern_is_an_outage_with_and_without_an_allowance() -> None:
    for permission in Permission:
        phase = first_phase(permission, proven=True)
        decided = step(phase, judge_discover(Silence(), seen=SEEN))
        assert (decided.do, decided.reason) == (Do.REFUSE, Reason.AMBIGUOUS_TIMEOUT)
        assert cause_of(decided.reason, proven=True) is Cause.PROCESS


def test_a_life_that_showed_itself_modern_is_not_asked_to_initialize_in_a_later_round() -> None:
    phase = first_phase(Permission.GRANTED, shown_modern=True)
    decided = step(phase, evidence(K.ERROR))
    assert (decided.do, decided.reason) == (Do.REFUSE, Reason.WAS_MODERN)


INITIALIZED = Raw(
    b'{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
)
NAMELESS = Raw(
    b'{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"","version":"1"}}'
)
FUTURE = Raw(
    b'{"protocolVersion":"2026-07-28","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
)


@pytest.mark.parametrize(
    ("answer", "do", "reason", "cause"),
    [
        (Result(2, INITIALIZED), Do.ACCEPT_LEGACY, Reason.INITIALIZE_OK, None),
        (Result(2, NAMELESS), Do.REFUSE, Reason.LEGACY_PROBE_INVALID, Cause.PROTOCOL),
        (Result(2, FUTURE), Do.REFUSE, Reason.LEGACY_UNSUPPORTED_REVISION, Cause.PROTOCOL),
        (Error(2, -32602, ""), Do.REFUSE, Reason.LEGACY_PROBE_ERROR, Cause.PROTOCOL),
        (Broken(2, "both"), Do.REFUSE, Reason.LEGACY_PROBE_INVALID, Cause.PROTOCOL),
        (Silence(), Do.REFUSE, Reason.LEGACY_PROBE_TIMEOUT, Cause.PROCESS),
        (Closed(), Do.REFUSE, Reason.LEGACY_PROBE_CLOSED, Cause.PROCESS),
        (Error(2, -32022, ""), Do.END_LIFE, Reason.LATE_MODERN_EVIDENCE, Cause.PROTOCOL),
        (Broken(2, "both", -32020), Do.END_LIFE, Reason.LATE_MODERN_EVIDENCE, Cause.PROTOCOL),
    ],
)
@pytest.mark.parametrize("phase", [Phase.INITIALIZING, Phase.INITIALIZING_FRESH])
def test_the_answer_to_initialize_decides(
    phase: Phase,
    answer: Result | Error | Broken | Silence | Closed,
    do: Do,
    reason: Reason,
    cause: Cause | None,
) -> None:
    judged = judge_initialize(answer, seen=SEEN, allowed=("2025-11-25",))
    decided = step(phase, judged)
    assert (decided.do, decided.reason) == (do, reason)
    assert cause_of(reason) is cause


def test_a_spawn_that_fails_has_its_own_reason_also_for_the_fresh_process() -> None:
    for phase in (*(set(FIRST) - {Phase.INITIALIZE_SPENT}), Phase.INITIALIZING_FRESH):
        decided = step(phase, Evidence(kind=K.SPAWN_FAILED, step="spawn"))
        assert (decided.do, decided.reason) == (Do.REFUSE, Reason.SPAWN_FAILED)


def test_a_life_whose_initialize_failed_is_kept_while_silent_and_replaced_when_it_speaks() -> None:
    phase = first_phase(Permission.GRANTED, initialize_sent=True)
    for kind in (K.TIMEOUT, K.NOISE, K.CLOSED):
        assert step(phase, evidence(kind)).do is Do.REFUSE
    for kind in (K.ERROR, K.EMPTY, K.MALFORMED, K.INITIALIZE_OK, K.INITIALIZE_ERROR):
        assert step(phase, evidence(kind)).do is Do.END_LIFE


# No error code is special but three


@given(st.permutations([-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32042, 0]))
def test_permuting_error_codes_changes_nothing(codes: list[int]) -> None:
    decided = {
        tuple(
            (taken.do, taken.after, taken.reason)
            for phase in sorted(set(FIRST) - {Phase.INITIALIZE_SPENT})
            for taken in [step(phase, judge_discover(Error(1, code, ""), seen=SEEN))]
        )
        for code in codes
    }
    assert len(decided) == 1


@given(st.integers(), st.sampled_from(sorted(set(FIRST) - {Phase.INITIALIZE_SPENT})))
def test_a_code_proves_a_modern_server_exactly_where_it_is_one_of_the_three(
    code: int, phase: Phase
) -> None:
    for each in (code, -32099 + abs(code) % 80):
        judged = judge_discover(Error(1, each, ""), seen=SEEN)
        assert judged.proves_modern == (each in MODERN_ERRORS)
        answered = judge_initialize(Error(1, each, ""), seen=SEEN, allowed=())
        assert answered.proves_modern == (each in MODERN_ERRORS)
        if each not in MODERN_ERRORS:
            assert step(phase, judged) == step(phase, Evidence(**_facts(judged)))


def _facts(judged: Evidence) -> dict[str, object]:
    return {
        "kind": K.ERROR,
        "step": "discover",
        "version": judged.version,
        "timeout_ms": judged.timeout_ms,
        "rpc_code": judged.rpc_code,
    }


# Causes and directions


def test_every_reason_has_a_cause_or_is_a_success() -> None:
    successes = {Reason.DISCOVER_OK, Reason.INITIALIZE_OK, Reason.MODERN_ERROR_RETRY}
    assert {reason for reason in Reason if cause_of(reason) is None} == successes


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_over_http_what_would_be_the_process_is_the_network(transport: str) -> None:
    for reason in (
        Reason.LEGACY_PROBE_TIMEOUT,
        Reason.LEGACY_PROBE_CLOSED,
        Reason.SPAWN_FAILED,
    ):
        assert cause_of(reason) is Cause.PROCESS
        assert cause_of(reason, transport=transport) is Cause.NETWORK
    assert cause_of(Reason.AMBIGUOUS_ERROR, transport=transport) is Cause.POLICY


@pytest.mark.parametrize(
    ("previous", "selected", "direction"),
    [
        (Era.UNKNOWN, Era.MODERN, Direction.FIRST),
        (Era.UNKNOWN, Era.LEGACY, Direction.FIRST),
        (Era.UNKNOWN, Era.UNKNOWN, Direction.NONE),
        (Era.MODERN, Era.MODERN, Direction.NONE),
        (Era.MODERN, Era.UNKNOWN, Direction.NONE),
        (Era.MODERN, Era.LEGACY, Direction.DOWNGRADE),
        (Era.LEGACY, Era.MODERN, Direction.UPGRADE),
    ],
)
def test_directions(previous: Era, selected: Era, direction: Direction) -> None:
    assert direction_of(previous, selected) is direction
