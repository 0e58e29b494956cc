from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.decisions.evidence import (
    Closed,
    Seen,
    Silence,
    excerpt_of,
    judge_discover,
    judge_initialize,
    judge_spawn,
)
from observant_host.decisions.evidence_kinds import OUTCOMES, PROVE_MODERN, EvidenceKind
from observant_host.decisions.terms import LegacyProbeOutcome, ProbeOutcome
from observant_host.wire.jsonrpc import Broken, Error, Result, decode

K = EvidenceKind
SEEN = Seen(
    version="2026-07-28", excerpt="what came", elapsed_ms=12.5, timeout_ms=30_000.0, late=True
)
DISCOVERED = Raw(b'{"supportedVersions":["2027-01-01","2026-07-28"],"capabilities":{}}')
INITIALIZED = Raw(
    b'{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
)


def test_evidence_is_told_in_the_outward_shape() -> None:
    assert judge_discover(Error(1, -32601, "secret"), seen=SEEN).to_dict() == {
        "step": "discover",
        "version": "2026-07-28",
        "outcome": "error",
        "rpc_code": -32601,
        "http_status": None,
        "content_type": None,
        "excerpt": "what came",
        "elapsed_ms": 12.5,
        "timeout_ms": 30_000.0,
        "late": True,
    }
    json.dumps(judge_initialize(Silence(), seen=SEEN, allowed=()).to_dict())


def test_every_kind_has_an_outcome_of_its_probe() -> None:
    assert set(OUTCOMES) == set(EvidenceKind)
    for kind, outcome in OUTCOMES.items():
        legacy = kind.startswith(("initialize", "sse"))
        assert isinstance(outcome, LegacyProbeOutcome if legacy else ProbeOutcome)
    told = {str(each) for kind, each in OUTCOMES.items() if kind.startswith(("init", "sse"))}
    assert told == {str(outcome) for outcome in LegacyProbeOutcome}


def test_what_is_chosen_is_what_we_prefer_among_what_the_server_speaks() -> None:
    judged = judge_discover(Result(1, DISCOVERED), seen=SEEN, modern=("2026-07-28", "2027-01-01"))
    assert (judged.kind, judged.chosen) == (K.DISCOVER_OK, "2026-07-28")
    assert judged.supported == ("2027-01-01", "2026-07-28")
    offered = Raw(b'{"supported":["2026-07-28"]}')
    again = judge_discover(
        Error(1, -32022, "", offered), seen=SEEN, modern=("2027-01-01", "2026-07-28")
    )
    assert (again.kind, again.chosen) == (K.VERSION_MUTUAL, "2026-07-28")


@pytest.mark.parametrize(
    "data", [None, b"null", b"[]", b"{}", b'"x"', b'{"supported":null}', b"1e400"]
)
def test_a_version_error_without_a_readable_list_is_still_modern(data: bytes | None) -> None:
    raw = None if data is None else Raw(data)
    judged = judge_discover(Error(1, -32022, "", raw), seen=SEEN)
    assert (judged.kind, judged.rpc_code) == (K.MODERN_ERROR, -32022)
    assert judged.proves_modern


def test_a_list_beside_another_recognised_code_is_not_followed() -> None:
    raw = Raw(b'{"supported":["2026-07-28"]}')
    assert judge_discover(Error(1, -32021, "", raw), seen=SEEN).kind is K.MODERN_ERROR


def test_legacy_and_unknown_revisions_together_are_no_mutual_version() -> None:
    raw = Raw(b'{"supportedVersions":["2025-11-25","2027-01-01"],"capabilities":{}}')
    assert judge_discover(Result(1, raw), seen=SEEN).kind is K.DISCOVER_NO_MUTUAL


def test_a_result_under_an_id_that_only_resembles_ours_proves_nothing() -> None:
    judged = judge_discover(Result("1", DISCOVERED), seen=SEEN, paired=False)
    assert (judged.kind, judged.proves_modern) == (K.MALFORMED, False)
    odd = judge_discover(Error("1", -32601, ""), seen=SEEN, paired=False)
    assert odd.kind is K.MALFORMED
    answered = judge_initialize(
        Result("1", INITIALIZED), seen=SEEN, allowed=("2025-06-18",), paired=False
    )
    assert answered.kind is K.INITIALIZE_INVALID
    assert "id" in answered.problem


def test_an_error_that_names_no_request_counts_as_the_answer() -> None:
    unpaired = judge_discover(Error(None, -32601, ""), seen=SEEN, paired=False)
    assert unpaired.kind is K.ERROR
    initialize = judge_initialize(Error(None, -32601, ""), seen=SEEN, allowed=(), paired=False)
    assert initialize.kind is K.INITIALIZE_ERROR


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_a_recognised_code_is_modern_however_badly_it_is_wrapped(code: int) -> None:
    frames = [
        b'{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":%d,"data":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":%d}}',
        b'{"id":1,"error":{"code":%d,"message":5}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":%d}}',
        b'{"jsonrpc":"2.0","id":"1","error":{"code":%d}}',
        b'[{"jsonrpc":"2.0","id":1,"error":{"code":%d}}]',
    ]
    for frame in frames:
        (message,) = decode(frame % code)
        assert isinstance(message, Error | Broken)
        for paired in (True, False):
            assert judge_discover(message, seen=SEEN, paired=paired).kind is K.MODERN_ERROR
            answered = judge_initialize(message, seen=SEEN, allowed=(), paired=paired)
            assert answered.kind is K.INITIALIZE_MODERN


def test_an_initialize_result_must_name_an_allowed_revision() -> None:
    for allowed, kind, chosen in (
        (("2025-11-25", "2025-06-18"), K.INITIALIZE_OK, "2025-06-18"),
        (("2025-11-25",), K.INITIALIZE_REVISION, None),
    ):
        judged = judge_initialize(Result(2, INITIALIZED), seen=SEEN, allowed=allowed)
        assert (judged.kind, judged.chosen, judged.supported) == (kind, chosen, ("2025-06-18",))


def test_what_is_wrong_is_said_by_the_name_of_the_field() -> None:
    nameless = Raw(b'{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":""}}')
    judged = judge_initialize(Result(2, nameless), seen=SEEN, allowed=("2025-06-18",))
    assert judged.problem == '`serverInfo.name` is "", not a non-empty string'
    bare = judge_discover(Result(1, Raw(b'{"tools":[]}')), seen=SEEN)
    assert bare.problem == "`supportedVersions` is missing, not a list of strings"


def test_ends_and_failed_starts_keep_the_transports_sentence() -> None:
    for judged in (
        judge_spawn("no such file", seen=SEEN),
        judge_discover(Closed("no such file"), seen=SEEN),
        judge_initialize(Closed("no such file"), seen=SEEN, allowed=()),
    ):
        assert judged.problem == "no such file"
        assert not judged.proves_modern
        assert judged.outcome == "closed"


def test_an_excerpt_is_512_bytes_of_text() -> None:
    assert excerpt_of(b"x" * 600) == "x" * 512
    assert excerpt_of(b"\xff") == "�"


@given(st.binary(max_size=120))
def test_nothing_but_a_discover_result_or_a_recognised_code_proves_a_modern_server(
    inside: bytes,
) -> None:
    for message in decode(b'{"jsonrpc":"2.0","id":1,"result":' + inside + b"}"):
        if isinstance(message, Result | Error | Broken):
            judged = judge_discover(message, seen=SEEN)
            if judged.kind in PROVE_MODERN and not isinstance(message, Result):
                assert b"-320" in inside
            assert judge_initialize(message, seen=SEEN, allowed=()).kind is not K.INITIALIZE_OK
