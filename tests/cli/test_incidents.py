"""`incidents` and `record purge`, with a running host and with nothing but files."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from observant_host.cli import incident_report as report
from observant_host.cli.main import run
from observant_host.cli.moments import before
from observant_host.errors import InvalidCall
from tests.cli.serving import Serving, serving
from tests.incidents.week import record_week

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTRACT = {
    *("id", "kind", "server", "start", "end", "class", "confidence", "why", "before", "calls"),
    *("witnesses", "trace_ids"),
}
WEEK = ("--since", "2026-11-02", "--until", "2026-11-09T00:00Z")
NOON = 1_764_417_600_000_000_000
"""2025-11-29T12:00Z"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("host")) as running:
        running.until("host_lifecycle", what="published")
        yield running


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return [
        word for one in asyncio.run(record_week(tmp_path)) for word in ("--state-dir", str(one))
    ]


def test_a_running_host_is_asked_for_its_incidents(
    host: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ("--config", str(host.stage.config))
    assert run(["incidents", "--json", *config]) == 0
    said = capsys.readouterr()
    assert "asking the running host" in said.err
    document = json.loads(said.out)
    assert document.keys() >= {"since", "until", "telemetry_lost", "incidents"}
    assert document["telemetry_lost"] == 0
    told = {(one["server"], one["kind"]): one for one in document["incidents"]}
    assert all(one.keys() >= CONTRACT for one in told.values())
    assert told["attic", "refusal"]["class"] == "allowance"
    assert told["archive", "downgrade"]["class"] == "allowance"
    assert run(["incidents", "--server", "attic", *config]) == 0
    text = capsys.readouterr().out
    assert text.startswith("1 incident between")
    assert "REFUSAL of attic: allowance (medium confidence)" in text
    assert "archive" not in text


def test_an_old_server_that_is_spoken_to_as_allowed_is_told_in_one_sentence(
    host: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ("--config", str(host.stage.config))
    assert run(["incidents", *config]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "of archive" not in text
    assert "Nothing went wrong with 1 old server spoken to as allowed: archive (20" in text
    assert "`observant-host incidents --server NAME` tells all about one" in text
    assert run(["incidents", "--server", "archive", *config]) == 0
    text = capsys.readouterr().out
    assert "DOWNGRADE of archive: allowance" in text
    assert "goes on, as allowed" in text


def test_a_running_host_purges_its_record_and_records_that(
    host: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ("--config", str(host.stage.config))
    purge = ["record", "purge", "--server", "library", "--reason", "asked for", *config]
    assert run([*purge, "--dry-run", "--json"]) == 0
    would = json.loads(capsys.readouterr().out)
    assert would["spans"] > 3
    assert run(purge) == 0
    said = capsys.readouterr()
    assert "asking the running host" in said.err
    assert said.out.startswith(f"{would['spans']} spans in ")
    act = host.until("operator_act", verb="purge")
    assert (act["peer"], act["reason"]) == ("library", "asked for")
    assert act["principal"].startswith("cli:")
    assert run(["explain", "library", "--json", *config]) == 0
    assert json.loads(capsys.readouterr().out)["decisions"] == []
    assert run(["record", "purge", "--before", "3000-01-01T00:00Z", *config]) == 0
    assert " spans in " in capsys.readouterr().out


def test_several_folders_are_told_as_text_without_a_terminals_colours(
    sources: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["incidents", *WEEK, *sources]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "in the record of 3 hosts; 12 spans lost" in text.splitlines()[0]
    assert "DOWNGRADE of billing: server_rollback (high confidence)" in text
    assert "modern -> legacy 2025-11-25, reason initialize_ok, after restart, NOT EXPECTED" in text
    assert "7 in the legacy era: 5 ok, 2 tool_error" in text
    assert "a probe timeout of 10 s would have met it" in text
    assert "since 2026-11-07 11:00:0" in text
    assert "a person acted after 20 min, well again after 23 h" in text


def test_a_report_for_the_review_is_markdown_that_no_server_can_break(
    sources: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["incidents", *WEEK, "--format", "markdown", *sources]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Incidents\n")
    assert "## OUTAGE of forecast: false\\_timeout (high confidence)" in text
    assert "\\<html\\>\\<body\\>Your session has expired." in text
    assert "<html>" not in text


def test_where_no_host_runs_the_record_is_read_and_purged_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, _, c) = asyncio.run(record_week(tmp_path))
    config = tmp_path / "observant-host.toml"
    config.write_text(f'version = 1\n[host]\nstate_dir = "{c}"\n')
    given = ("--config", str(config))
    assert run(["incidents", *WEEK, "--json", *given]) == 0
    assert len(json.loads(capsys.readouterr().out)["incidents"]) == 7
    assert (c / "incidents.sqlite").exists()
    assert run(["record", "purge", "--server", "billing", "--yes", *given]) == 0
    assert run(["record", "purge", "--server", "billing", "--dry-run", *given]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 spans in 0 files would be deleted, 0.0 MB"
    assert run(["incidents", *WEEK, "--json", *given]) == 0
    left = json.loads(capsys.readouterr().out)["incidents"]
    assert {one["server"] for one in left} == {"archive", "mail", "tickets", "wiki"}


def test_a_purge_tells_what_it_leaves_and_takes_from_the_audit_only_when_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "observant-host.toml"
    config.write_text(f'version = 1\n[host]\nstate_dir = "{tmp_path}"\n')
    for name in ("audit/1.jsonl", "capture/a-1.jsonl", "crash-1.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"time": "2026-01-01T00:00:00Z", "server": "a"}\n')
    purge = ["record", "purge", "--server", "a", "--yes", "--config", str(config)]
    assert run(purge) == 0
    said = capsys.readouterr()
    assert said.out == "0 spans in 0 files deleted, 0.0 MB\n"
    left = f"left as they are in {tmp_path}: audit (--audit deletes from it): 1 file, captures: 1 f"
    assert left in said.err.replace("\n", " ")
    assert run([*purge, "--audit", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["audit"]["lines"] == 1
    assert run([*purge, "--audit"]) == 0
    said = capsys.readouterr()
    assert "of the audit 1 line in 1 file deleted, 0.0 MB" in said.out
    assert "audit" not in said.err
    assert not list((tmp_path / "audit").iterdir())


def test_a_purge_that_says_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["record", "purge"]) == 2
    assert "say --before, --server, or both" in capsys.readouterr().err


def test_a_moment_that_is_none_is_refused_with_what_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["incidents", "--since", "yesterday"]) == 2
    assert "--since yesterday: give a duration" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("24h", 86400), ("7d", 604800), ("2w", 1209600)],
)
def test_a_duration_looks_back(text: str, seconds: int) -> None:
    assert before(text, now_ns=NOON, option="--since") == NOON - seconds * 10**9


@pytest.mark.parametrize(
    "text", ["2025-11-29T12:00Z", "2025-11-29T13:00+01:00", "2025-11-29 12:00"]
)
def test_a_moment_without_a_zone_is_utc(text: str) -> None:
    assert before(text, now_ns=0, option="--since") == NOON


def test_the_dawn_of_time_is_as_far_as_it_goes() -> None:
    assert before("99999999999999w", now_ns=NOON, option="--since") == 0
    assert before("1901-01-01", now_ns=NOON, option="--since") == 0
    with pytest.raises(InvalidCall):
        before("0000-01-01", now_ns=NOON, option="--since")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"telemetry_lost": None}, "how much telemetry was lost is not known"),
        ({"telemetry_lost": 1, "unreadable": 2}, "1 span lost, 2 lines of the record unreadable"),
        (
            {"telemetry_lost": 0, "complete": False},
            "0 spans lost, not everything was read: ask for a shorter time",
        ),
    ],
)
def test_what_the_record_lacks_is_said(document: dict, said: str) -> None:
    assert report.losses(document) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.004, "0.004 s"), (3.21, "3.2 s"), (59, "59 s"), (180, "3 min"), (9000, "2 h")],
)
def test_a_span_of_time_is_told_as_people_do(seconds: float, said: str) -> None:
    assert report.span(seconds) == said
