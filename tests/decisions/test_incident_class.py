"""Why an incident happened: each rule alone, together, and over everything they may be given."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.decisions.incident_class import RULES, classify, timeout_line
from observant_host.decisions.incident_terms import (
    Confidence,
    IncidentClass,
    IncidentKind,
    Piece,
    Seen,
    is_modern,
)
from observant_host.decisions.terms import Reason

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW
DOWNGRADE, OUTAGE, REFUSAL = IncidentKind.DOWNGRADE, IncidentKind.OUTAGE, IncidentKind.REFUSAL


def piece(step: str = "discover", outcome: str = "error", **more: Any) -> Piece:
    blank = dict.fromkeys(
        (
            "version",
            "rpc_code",
            "http_status",
            "content_type",
            "excerpt",
            "elapsed_ms",
            "timeout_ms",
        )
    )
    return {**blank, "step": step, "outcome": outcome, "late": False, **more}


SILENCE = piece(outcome="timeout", elapsed_ms=5000.0, timeout_ms=5000.0)
LATE = piece(outcome="ok", elapsed_ms=9300.0, timeout_ms=5000.0, late=True)
UNKNOWN_METHOD = piece(rpc_code=-32601)
OLD = piece("initialize", "ok")
PAGE = piece(outcome="http_candidate", http_status=400, content_type="text/html", excerpt="<html>")


def downgrade(**more: Any) -> Seen:
    """Legacy was chosen by the rules, against what was remembered."""
    usual = {
        "kind": DOWNGRADE,
        "reason": "initialize_ok",
        "expected": False,
        "evidence": (UNKNOWN_METHOD, OLD),
        "proven": True,
        "legacy_offered": True,
    }
    return Seen(**{**usual, **more})


def verdict(seen: Seen) -> tuple[IncidentClass, Confidence]:
    found = classify(seen)
    assert found.why
    return found.name, found.confidence


@pytest.mark.parametrize(
    "broken",
    [
        {"modern_in_life": True},
        {"legacy_offered": False},
        {"reason": "ambiguous_timeout"},
        {"reason": ""},
        {"evidence": (piece(outcome="modern_error", rpc_code=-32022), OLD)},
        {"evidence": (piece(rpc_code=-32021), OLD)},
    ],
)
def test_legacy_that_the_rules_do_not_permit_is_our_own_defect(broken: dict[str, Any]) -> None:
    seen = downgrade(version_before="2", version_after="1", **broken)
    assert verdict(seen) == (IncidentClass.SPECIFICATION_VIOLATION, HIGH)
    assert "defect of observant-host" in " ".join(classify(seen).why)


def test_a_modern_answer_to_initialize_itself_is_no_defect() -> None:
    late = (SILENCE, piece("initialize", "modern_evidence", rpc_code=-32022))
    seen = Seen(kind=OUTAGE, reason="late_modern_evidence", evidence=late, proven=True)
    assert verdict(seen)[0] is not IncidentClass.SPECIFICATION_VIOLATION


@pytest.mark.parametrize(
    ("more", "sure"),
    [
        ({"allowed_by": "cli:ada", "expected": True}, HIGH),
        ({"first_legacy": True, "proven": False, "expected": True}, HIGH),
        ({"expected": True}, MEDIUM),
    ],
)
def test_legacy_that_a_person_allowed_is_an_allowance(
    more: dict[str, Any], sure: Confidence
) -> None:
    assert verdict(downgrade(**more)) == (IncidentClass.ALLOWANCE, sure)


def test_a_persons_word_comes_before_what_the_server_became() -> None:
    seen = downgrade(allowed_by="ada", expected=True, version_before="2", version_after="1")
    found = classify(seen)
    assert (found.name, found.confidence) == (IncidentClass.ALLOWANCE, HIGH)
    assert "also: the server was version 2 before and 1 after" in found.why


@pytest.mark.parametrize("reason", ["allowance_expired", "allowance_mismatch"])
def test_a_permission_that_ended_is_an_allowance(reason: str) -> None:
    assert verdict(Seen(kind=REFUSAL, reason=reason)) == (IncidentClass.ALLOWANCE, HIGH)


def test_an_old_server_that_nobody_allowed_waits_for_an_allowance() -> None:
    never = Seen(kind=REFUSAL, reason="ambiguous_error", evidence=(UNKNOWN_METHOD,))
    assert verdict(never) == (IncidentClass.ALLOWANCE, MEDIUM)
    proven = msgspec.structs.replace(never, proven=True)
    assert verdict(proven)[0] is IncidentClass.SERVER_ROLLBACK
    login = msgspec.structs.replace(never, reason="auth_required", evidence=())
    assert verdict(login) == (IncidentClass.UNKNOWN, LOW)


@pytest.mark.parametrize(
    ("more", "sure"),
    [
        ({"stall_ms": 4000.0}, HIGH),
        ({"stall_ms": 600.0}, MEDIUM),
        ({"stall_ms": 4000.0, "evidence": (), "reason": "exit"}, MEDIUM),
        ({"stall_ms": 4000.0, "evidence": (), "reason": "exit", "fell": ("b", "c")}, HIGH),
        ({"fell": ("b", "c"), "peers": 9, "hosts": 3}, MEDIUM),
        ({"fell": ("b", "c"), "peers": 5}, MEDIUM),
        ({"fell": ("b", "c"), "peers": 9, "proven": False}, LOW),
    ],
)
def test_a_stall_and_servers_that_fall_together_on_one_host_are_the_hosts(
    more: dict[str, Any], sure: Confidence
) -> None:
    usual = {"kind": OUTAGE, "reason": "ambiguous_timeout", "evidence": (SILENCE,), "proven": True}
    assert verdict(Seen(**{**usual, **more})) == (IncidentClass.HOST_SIDE, sure)


@pytest.mark.parametrize(
    "reason",
    ["config_invalid", "spawn_failed", "unreachable", "auth_required", "no_mutual_version"],
)
def test_a_stall_explains_nothing_that_was_found_whatever_time_it_took(reason: str) -> None:
    seen = Seen(kind=OUTAGE, reason=reason, stall_ms=4000.0)
    assert verdict(seen) == (IncidentClass.UNKNOWN, LOW)


def test_servers_that_fall_on_other_hosts_too_are_not_this_hosts() -> None:
    seen = Seen(kind=OUTAGE, reason="exit", fell=("b", "c"), witnesses=2, hosts=3)
    assert verdict(seen) == (IncidentClass.UNKNOWN, LOW)


@pytest.mark.parametrize(
    ("more", "sure"),
    [
        ({"after": (LATE,)}, HIGH),
        ({"evidence": (SILENCE, LATE)}, HIGH),
        ({"evidence": (), "reason": "late_modern_evidence", "after": (LATE,)}, HIGH),
        ({"healed_modern": True}, MEDIUM),
        ({"healed_modern": True, "restarted": True}, LOW),
        ({}, LOW),
    ],
)
def test_a_slow_modern_server_is_a_false_timeout_as_sure_as_its_proof(
    more: dict[str, Any], sure: Confidence
) -> None:
    usual = {"kind": OUTAGE, "reason": "ambiguous_timeout", "evidence": (SILENCE,), "proven": True}
    assert verdict(Seen(**{**usual, **more})) == (IncidentClass.FALSE_TIMEOUT, sure)


def test_silence_of_a_server_that_came_back_as_another_version_is_no_false_timeout() -> None:
    seen = Seen(
        kind=REFUSAL,
        reason="ambiguous_timeout",
        evidence=(SILENCE,),
        proven=False,
        healed_modern=True,
        version_before="1",
        version_after="2",
    )
    assert verdict(seen) == (IncidentClass.SERVER_ROLLBACK, HIGH)


def test_a_late_answer_without_its_time_is_told_all_the_same() -> None:
    late = {**LATE, "elapsed_ms": None}
    seen = Seen(kind=REFUSAL, reason="ambiguous_timeout", evidence=(SILENCE, late))
    assert verdict(seen) == (IncidentClass.FALSE_TIMEOUT, HIGH)
    assert "no probe timeout is known" in (timeout_line(seen) or "")


def page(status: int, kind: str | None, excerpt: str) -> Piece:
    return piece(http_status=status, content_type=kind, excerpt=excerpt)


@pytest.mark.parametrize(
    ("one", "sure"),
    [
        (PAGE, HIGH),
        (page(404, None, "  <!DOCTYPE html><p>"), HIGH),
        (page(400, "text/html; charset=utf-8", ""), HIGH),
        (page(403, "text/html", "<html>"), MEDIUM),
        (page(502, "text/html", "<html>"), MEDIUM),
        (page(200, "application/xhtml+xml", "<html>"), MEDIUM),
        (page(404, "text/plain", "no such page"), MEDIUM),
        (page(404, "application/json", "{}"), None),
        (page(404, "text/plain", ""), None),
        (page(401, "text/plain", "who are you"), None),
        (page(500, "text/plain", "oops"), None),
        (piece(excerpt="<html>"), None),
    ],
)
def test_a_page_where_json_belongs_is_somebody_in_between(
    one: Piece, sure: Confidence | None
) -> None:
    seen = Seen(kind=REFUSAL, reason="http_unavailable", evidence=(one,))
    wanted = (IncidentClass.UNKNOWN, LOW) if sure is None else (IncidentClass.INTERMEDIARY, sure)
    assert verdict(seen) == wanted


def test_of_several_pages_the_surest_counts() -> None:
    seen = Seen(kind=REFUSAL, evidence=(page(502, "text/html", "<html>"), PAGE))
    assert verdict(seen) == (IncidentClass.INTERMEDIARY, HIGH)


@pytest.mark.parametrize(
    ("more", "sure"),
    [
        ({"version_before": "2.1", "version_after": "1.9"}, HIGH),
        ({"kind": OUTAGE, "reason": "exit", "version_before": "2", "version_after": "3"}, MEDIUM),
        ({"kind": REFUSAL, "reason": "was_modern"}, MEDIUM),
        ({"kind": REFUSAL, "reason": "was_modern", "evidence": (piece(outcome="empty"),)}, LOW),
        ({}, MEDIUM),
        ({"healed_modern": True}, LOW),
    ],
)
def test_a_server_that_became_another_was_rolled_back(
    more: dict[str, Any], sure: Confidence
) -> None:
    assert verdict(downgrade(**more)) == (IncidentClass.SERVER_ROLLBACK, sure)


@pytest.mark.parametrize(
    "more",
    [
        {"healed_modern": True, "evidence": (piece(outcome="empty"), OLD)},
        {"evidence": (piece(outcome="closed"), OLD)},
        {"proven": False},
    ],
)
def test_without_a_sign_of_a_cause_it_is_unknown(more: dict[str, Any]) -> None:
    assert verdict(downgrade(**more)) == (IncidentClass.UNKNOWN, LOW)


def test_what_is_unknown_says_what_is_known() -> None:
    assert classify(Seen(kind=OUTAGE)).why == ("nothing in the record says why",)
    assert classify(Seen(kind=OUTAGE, reason="exit")).why == (
        "nothing in the record says why (exit)",
    )
    assert classify(Seen(kind=OUTAGE, noted=("exit code 1",))).why == ("exit code 1",)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"after": (LATE,)},
            "a probe timeout of 10 s would have met it: the answer came after 9.3 s (it is 5 s)",
        ),
        (
            {"healed_modern": True},
            (
                "how long it would have needed is not known: it answered another probe in time"
                " (it is 5 s)"
            ),
        ),
        ({}, "no probe timeout is known that would have met it: no answer ever came (it is 5 s)"),
        ({"evidence": ()}, "no probe timeout is known that would have met it: no answer ever came"),
    ],
)
def test_the_timeout_that_would_have_met_it_is_told(more: dict[str, Any], said: str) -> None:
    usual = {"kind": REFUSAL, "reason": "ambiguous_timeout", "evidence": (SILENCE,)}
    assert timeout_line(Seen(**{**usual, **more})) == said


def test_where_silence_decided_nothing_no_timeout_is_told() -> None:
    assert timeout_line(downgrade()) is None


PIECES = st.builds(
    piece,
    st.sampled_from(["spawn", "connect", "discover", "initialize", "get_sse"]),
    st.sampled_from(["ok", "modern_error", "error", "empty", "timeout", "closed", "http_other"]),
    rpc_code=st.sampled_from([None, -32601, -32022]),
    http_status=st.sampled_from([None, 200, 400, 401, 502]),
    content_type=st.sampled_from([None, "text/html", "application/json"]),
    excerpt=st.sampled_from([None, "", "<html>", "{}"]),
    elapsed_ms=st.sampled_from([None, 0.0, 7000.0]),
    timeout_ms=st.sampled_from([None, 5000.0]),
    late=st.booleans(),
)
ANYTHING = st.builds(
    Seen,
    kind=st.sampled_from(IncidentKind),
    reason=st.sampled_from(["", "exit", *Reason]),
    expected=st.booleans(),
    evidence=st.lists(PIECES, max_size=3).map(tuple),
    after=st.lists(PIECES, max_size=2).map(tuple),
    proven=st.booleans(),
    first_legacy=st.booleans(),
    legacy_offered=st.booleans(),
    modern_in_life=st.booleans(),
    allowed_by=st.sampled_from(["", "ada"]),
    version_before=st.sampled_from([None, "1"]),
    version_after=st.sampled_from([None, "1", "2"]),
    healed_modern=st.booleans(),
    restarted=st.booleans(),
    stall_ms=st.sampled_from([0.0, 500.0, 5000.0]),
    fell=st.sampled_from([(), ("b",), ("b", "c", "d")]),
    peers=st.integers(1, 9),
    witnesses=st.integers(1, 3),
    hosts=st.integers(3, 4),
)


@given(ANYTHING)
def test_everything_has_one_class_that_its_own_rule_gave_and_nothing_surer_was_passed_over(
    seen: Seen,
) -> None:
    found = classify(seen)
    given_by = [one for rule in RULES if (one := rule(seen)) is not None]
    order = list(Confidence)
    if given_by:
        assert any(one.name is found.name for one in given_by)
        assert all(order.index(one.confidence) >= order.index(found.confidence) for one in given_by)
        assert {why for one in given_by for why in one.why} == {
            why.removeprefix("also: ") for why in found.why
        }
    else:
        assert (found.name, found.confidence) == (IncidentClass.UNKNOWN, LOW)
    assert timeout_line(seen) is None or seen.silent


@given(ANYTHING)
def test_a_downgrade_without_a_permission_is_never_anything_but_our_defect(seen: Seen) -> None:
    seen = msgspec.structs.replace(seen, kind=DOWNGRADE, legacy_offered=False)
    assert classify(seen).name is IncidentClass.SPECIFICATION_VIOLATION


def test_modern_proof_is_what_only_modern_servers_say() -> None:
    assert is_modern(piece(outcome="ok"))
    assert is_modern(piece("initialize", "modern_evidence"))
    assert not is_modern(OLD)
    assert not is_modern(SILENCE)
