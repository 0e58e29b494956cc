from __future__ import annotations

import tomllib
from datetime import date

import pytest

from observant_host.decisions.era_sentences import sentence, table_of
from observant_host.decisions.evidence import Evidence
from observant_host.decisions.evidence_kinds import EvidenceKind
from observant_host.decisions.terms import Reason

SUCCESSES = {Reason.DISCOVER_OK, Reason.INITIALIZE_OK, Reason.MODERN_ERROR_RETRY}
CANARY = "tok-canary-1234"
LAST = Evidence(
    kind=EvidenceKind.ERROR,
    step="discover",
    version="2026-07-28",
    rpc_code=-32601,
    excerpt=CANARY,
    timeout_ms=30_000.0,
    supported=("2025-11-25", "x" * 500, "\x1b[2J", *["y"] * 20),
    chosen="2025-11-25",
)


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_names_the_server_and_a_next_step_and_no_excerpt(reason: Reason) -> None:
    for evidence in ((), (LAST,)):
        for proven in (False, True):
            text = sentence(reason, server="archive", evidence=evidence, proven=proven)
            assert text.startswith("archive ")
            assert text.endswith(".")
            assert "{" not in text
            assert CANARY not in text
            assert "\x1b" not in text
            assert len(text) < 900
            if reason not in SUCCESSES:
                steps = ("`observant-host ", "`[servers", "[servers.archive]", "Update")
                assert any(step in text for step in steps)


@pytest.mark.parametrize(
    "reason",
    [
        Reason.AMBIGUOUS_TIMEOUT,
        Reason.AMBIGUOUS_CLOSED,
        Reason.AMBIGUOUS_ERROR,
        Reason.AMBIGUOUS_EMPTY,
        Reason.AMBIGUOUS_MALFORMED,
    ],
)
def test_a_refusal_names_the_exact_line_and_its_table(reason: Reason) -> None:
    text = sentence(reason, server="archive", evidence=(LAST,))
    assert "add `allow_legacy = true` to [servers.archive]" in text
    assert "`observant-host probe archive --suggest-legacy`" in text


def test_a_server_known_to_be_modern_is_not_advised_to_get_an_allowance() -> None:
    for reason in Reason:
        if reason.startswith("ambiguous"):
            text = sentence(reason, server="s", evidence=(LAST,), proven=True)
            assert "allow_legacy" not in text
    silent = sentence(Reason.AMBIGUOUS_TIMEOUT, server="s", evidence=(LAST,), proven=True)
    assert "outage" in silent
    failing = sentence(Reason.AMBIGUOUS_ERROR, server="s", evidence=(LAST,), proven=True)
    assert "`observant-host allow s`" in failing


def test_where_the_config_forbids_it_the_line_to_remove_is_named() -> None:
    for reason in (Reason.WAS_MODERN, Reason.AMBIGUOUS_ERROR):
        text = sentence(reason, server="s", evidence=(LAST,), proven=True, expect_modern=True)
        assert '`expect_era = "modern"`' in text
        assert "observant-host allow" not in text


def test_after_modern_evidence_in_the_same_round_an_old_protocol_is_no_topic() -> None:
    shown = Evidence(kind=EvidenceKind.VERSION_MUTUAL, step="discover", rpc_code=-32022)
    silent = sentence(Reason.AMBIGUOUS_TIMEOUT, server="s", evidence=(shown, LAST))
    assert "outage" in silent
    failing = sentence(Reason.AMBIGUOUS_ERROR, server="s", evidence=(shown, LAST))
    assert "showed itself modern" in failing
    assert "allow" not in failing


def test_facts_are_told() -> None:
    timed_out = sentence(Reason.AMBIGUOUS_TIMEOUT, server="s", evidence=(LAST,))
    assert "within 30 s" in timed_out
    refused = sentence(Reason.AMBIGUOUS_ERROR, server="s", evidence=(LAST,))
    assert "(-32601)" in refused
    revision = sentence(
        Reason.LEGACY_UNSUPPORTED_REVISION, server="s", evidence=(LAST,), allowed=("2025-06-18",)
    )
    assert "with 2025-11-25, " in revision
    assert "only 2025-06-18 may" in revision
    assert "and 15 more" in revision
    expired = sentence(Reason.ALLOWANCE_EXPIRED, server="s", expires=date(2026, 1, 31))
    assert "ended on 2026-01-31" in expired
    unnamed = Evidence(kind=EvidenceKind.DISCOVER_NO_MUTUAL, step="discover", problem="x" * 999)
    assert "speaks no revision" in sentence(
        Reason.NO_MUTUAL_VERSION, server="s", evidence=(unnamed,)
    )


@pytest.mark.parametrize("name", ["archive", "a.b", "9-x_y", "a.b-c"])
def test_the_table_is_toml_that_names_the_server(name: str) -> None:
    assert tomllib.loads(table_of(name)) == {"servers": {name: {}}}


@pytest.mark.parametrize(
    ("kind", "excerpt"),
    [
        (EvidenceKind.NOISE, "Content-Length: 185"),
        (EvidenceKind.MALFORMED, '{"jsonrpc":"2.0","id":1,"result":{}}content-length:7'),
    ],
)
def test_framing_of_another_protocol_is_named_whatever_came_after_it(
    kind: EvidenceKind, excerpt: str
) -> None:
    framed = Evidence(kind=kind, step="discover", excerpt=excerpt)
    silent = Evidence(kind=EvidenceKind.INITIALIZE_TIMEOUT, step="initialize")
    for reason, evidence in (
        (Reason.AMBIGUOUS_MALFORMED, (framed,)),
        (Reason.LEGACY_PROBE_TIMEOUT, (framed, silent)),
    ):
        assert "Content-Length headers" in sentence(reason, server="archive", evidence=evidence)
    chosen = sentence(Reason.INITIALIZE_OK, server="archive", evidence=(framed, silent))
    assert "Content-Length" not in chosen


def test_a_proper_error_that_mentions_the_header_is_no_framing() -> None:
    error = Evidence(kind=EvidenceKind.ERROR, step="discover", excerpt="Content-Length: 1")
    assert "headers" not in sentence(Reason.AMBIGUOUS_ERROR, server="a", evidence=(error,))
