"""Decisions and evidence in words; the moments and lines a person writes and reads."""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime

import pytest

from observant_host.cli.allow_command import moment_of
from observant_host.cli.call_command import content_lines, read_arguments
from observant_host.cli.catalogue_commands import first_sentence, for_model
from observant_host.cli.probe_command import asked_for, exit_code, pasteable
from observant_host.cli.words import decision_line, evidence_line, moment
from observant_host.decisions.words import ago, approximate_tokens, milliseconds
from observant_host.errors import InvalidCall
from observant_host.supervision.examine import Suggestion

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()


def test_evidence_says_what_was_asked_what_came_and_after_how_long() -> None:
    line = evidence_line(
        {
            "step": "discover",
            "version": "2026-07-28",
            "outcome": "error",
            "rpc_code": -32601,
            "excerpt": '{"error":\n1}',
            "elapsed_ms": 12.4,
            "late": False,
        }
    )
    assert line == (
        "server/discover at 2026-07-28 -> an error that says nothing about the era (-32601) "
        'after 12 ms: {"error": 1}'
    )


def test_a_timeout_names_its_bound_and_a_late_answer_says_so() -> None:
    assert evidence_line({"step": "discover", "outcome": "timeout", "timeout_ms": 30000.0}) == (
        "server/discover -> no answer within 30 s"
    )
    assert evidence_line(
        {"step": "discover", "outcome": "ok", "elapsed_ms": 0.4, "late": True}
    ) == ("server/discover -> a valid answer after 0.4 ms (late)")


def test_what_was_never_answered_is_not_called_an_answer() -> None:
    unanswered = {"step": "discover", "outcome": "http_other", "http_status": None}
    assert evidence_line(unanswered) == "server/discover -> no HTTP answer"
    assert evidence_line({**unanswered, "http_status": 503}) == (
        "server/discover -> an HTTP answer that says nothing about the era (HTTP 503)"
    )


def test_an_unexpected_downgrade_cannot_be_overlooked() -> None:
    line = decision_line(
        {
            "time": "2026-11-29T10:20:30.123Z",
            "direction": "downgrade",
            "expected": False,
            "from": "modern",
            "to": "legacy",
            "version": "2025-06-18",
            "reason": "initialize_ok",
            "generation": 4,
        }
    )
    assert line == (
        "2026-11-29 10:20:30Z  modern -> legacy 2025-06-18: initialize_ok "
        "(DOWNGRADE, NOT EXPECTED, generation 4)"
    )


def test_a_decision_without_a_direction_has_no_empty_place_for_it() -> None:
    line = decision_line(
        {
            "time": "2026-11-29T10:20:30.123Z",
            "direction": "",
            "from": "modern",
            "to": "modern",
            "reason": "operator",
            "generation": 1,
        }
    )
    assert line == "2026-11-29 10:20:30Z  modern -> modern: operator (generation 1)"


@pytest.mark.parametrize(
    ("seconds", "said"), [(4, "4 s"), (119, "119 s"), (180, "3 min"), (7200, "2 h"), (5e5, "6 d")]
)
def test_how_long_a_state_lasts(seconds: float, said: str) -> None:
    since = datetime.fromtimestamp(NOON - seconds, UTC).isoformat()
    assert ago(since, int(NOON * 1e9)) == said


def test_what_is_no_moment_is_shown_as_it_is() -> None:
    assert moment("soon") == "soon"
    assert ago("", 0) == ""


def test_milliseconds_keep_three_digits_at_most() -> None:
    assert [milliseconds(v) for v in (None, 0.25, 12.3, 1234.0)] == [
        "",
        "0.2 ms",
        "12 ms",
        "1.23 s",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30d", NOON + 30 * 86400),
        ("8h", NOON + 8 * 3600),
        ("2026-11-29", datetime(2026, 11, 30, tzinfo=UTC).timestamp()),
        ("2026-11-29T18:00Z", datetime(2026, 11, 29, 18, tzinfo=UTC).timestamp()),
        ("2026-11-29T18:00", datetime(2026, 11, 29, 18, tzinfo=UTC).timestamp()),
    ],
)
def test_until_takes_a_date_a_moment_or_a_duration(text: str, expected: float) -> None:
    assert moment_of(text, now=NOON) == expected


@pytest.mark.parametrize("text", ["soon", "30", "2026-13-01", "2020-01-01", "0d"])
def test_until_refuses_what_is_no_future_moment(text: str) -> None:
    with pytest.raises(InvalidCall, match="--until"):
        moment_of(text, now=NOON)


def test_arguments_are_an_object_from_text_file_or_stdin(tmp_path, monkeypatch) -> None:
    import io

    file = tmp_path / "a.json"
    file.write_text('{"n": 1.0}')
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"from": "stdin"}')))
    assert read_arguments('{"a": 1}') == b'{"a": 1}'
    assert read_arguments(f"@{file}") == b'{"n": 1.0}'
    assert read_arguments("-") == b'{"from": "stdin"}'


@pytest.mark.parametrize("given", ["{", "[1]", "@/no/such/file", "3"])
def test_arguments_that_are_no_object_are_refused_with_the_fix(given: str) -> None:
    with pytest.raises(InvalidCall, match="--args"):
        read_arguments(given)


def test_content_that_is_no_text_is_named() -> None:
    result = {
        "content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "x:1", "text": "inside"}},
            {"type": "new", "x": 1},
        ]
    }
    assert content_lines(result) == [
        "hello",
        "[image image/png, 3 bytes]",
        "inside",
        '{"type":"new","x":1}',
    ]
    assert content_lines({"structuredContent": {"a": 1}}) == ['{"a":1}']


def test_model_formats_use_api_names_and_leave_out_what_cannot_be_called() -> None:
    raw = b"""{"tools": [
      {"name": "a/b", "api_name": "a_b", "routable": true,
       "tool": {"name": "b", "description": "d", "inputSchema": {"type": "object"}}},
      {"name": "down", "api_name": "down", "routable": false, "tool": {"name": "down"}}]}"""
    assert for_model(raw, "openai") == [
        {
            "type": "function",
            "function": {"name": "a_b", "description": "d", "parameters": {"type": "object"}},
        }
    ]
    assert for_model(raw, "anthropic") == [
        {"name": "a_b", "description": "d", "input_schema": {"type": "object"}}
    ]


def test_long_descriptions_are_cut_for_tables() -> None:
    assert first_sentence("Finds it. And more.") == "Finds it"
    assert len(first_sentence("x" * 500)) == 100
    assert approximate_tokens(b"12345") == 2


def test_a_suggestion_is_toml_that_says_what_it_means() -> None:
    keys = {
        "allow_legacy": ["2025-06-18"],
        "legacy_reason": 'says "old"',
        "legacy_expires": "2027-05-28",
        "legacy_fingerprint": "sha256:ab",
    }
    text = pasteable(Suggestion(server="a.b", revision="2025-06-18", keys=keys))
    table = tomllib.loads(text)["servers"]["a.b"]
    assert table == {**keys, "legacy_expires": date(2027, 5, 28)}


def test_probe_asks_the_enabled_or_the_named() -> None:
    known = [{"name": "a", "state": "ready"}, {"name": "b", "state": "disabled"}]
    assert asked_for((), known) == ["a"]
    assert asked_for(("b",), known) == ["b"]
    with pytest.raises(InvalidCall, match="there are: a, b"):
        asked_for(("c",), known)


def test_probes_exit_code_counts_all_or_only_the_required() -> None:
    found = [{"name": "a", "state": "ready"}, {"name": "b", "state": "unavailable"}]
    assert exit_code(found, None) == 3
    assert exit_code(found, ["a"]) == 0
    assert exit_code(found[:1], None) == 0
