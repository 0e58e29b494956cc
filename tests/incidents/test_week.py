"""What is said of a recorded week, from every place that a record may lie in."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.incidents.answer import Question, Sources, incidents
from tests.incidents.week import MONDAY, SECOND, lines_of, record_week

if TYPE_CHECKING:
    from pathlib import Path

SINCE = int(MONDAY.timestamp()) * SECOND
WEEK = Question(since_ns=SINCE, until_ns=SINCE + 7 * 86_400 * SECOND)

EXPECTED = {
    ("downgrade", "archive", "abc"): ("allowance", "high"),
    ("outage", "forecast", "b"): ("false_timeout", "high"),
    ("outage", "billing", "c"): ("server_rollback", "medium"),
    ("refusal", "billing", "ab"): ("server_rollback", "high"),
    ("downgrade", "billing", "c"): ("server_rollback", "high"),
    ("downgrade", "billing", "a"): ("allowance", "high"),
    ("refusal", "search", "a"): ("intermediary", "high"),
    ("outage", "mail", "c"): ("host_side", "high"),
    ("outage", "tickets", "c"): ("host_side", "high"),
    ("outage", "wiki", "c"): ("host_side", "high"),
    ("downgrade", "mail", "b"): ("specification_violation", "high"),
    ("outage", "wiki", "a"): ("unknown", "low"),
    ("refusal", "tickets", "c"): ("unknown", "low"),
}


@pytest.fixture
async def folders(tmp_path: Path) -> list[Path]:
    return await record_week(tmp_path)


def by_name(document: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    found = {
        (one["kind"], one["server"], "".join(one["witnesses"])): one
        for one in document["incidents"]
    }
    assert len(found) == len(document["incidents"]), "each incident is told once"
    return found


def classes(document: dict[str, Any]) -> dict[tuple[str, str, str], tuple[str, str]]:
    return {key: (one["class"], one["confidence"]) for key, one in by_name(document).items()}


async def test_every_class_is_recognised_in_three_hosts_folders(folders: list[Path]) -> None:
    found = incidents(Sources(state_dirs=tuple(folders)), WEEK)
    assert classes(found) == EXPECTED
    assert {name for name, _ in EXPECTED.values()} == {
        *("server_rollback", "false_timeout", "intermediary", "allowance"),
        *("specification_violation", "host_side", "unknown"),
    }
    assert (found["unreadable"], found["complete"], found["hosts"]) == (0, True, ["a", "b", "c"])
    json.dumps(found)


async def test_an_incident_has_what_a_review_asks_for(folders: list[Path]) -> None:
    found = by_name(incidents(Sources(state_dirs=tuple(folders)), WEEK))
    fall = found["downgrade", "billing", "c"]
    assert (fall["from"], fall["to"], fall["expected"]) == ("modern", "legacy", False)
    assert fall["server_version"] == {"before": "2.1.0", "after": "1.9.3"}
    assert fall["calls"] == {"ok": 5, "tool_error": 2}
    assert "the configuration changed from c0ffee to beef02" in " ".join(fall["before"])
    assert fall["before"][-1] == "the server's own version changed from 2.1.0 to 1.9.3"
    assert fall["evidence"][0]["excerpt"] == '{"error": -32601}'
    assert fall["healed_s"] == pytest.approx(82_759, abs=60)
    assert fall["telemetry_lost"] == 0
    assert fall["trace_ids"]

    refused = found["refusal", "billing", "ab"]
    assert refused["acted_s"] == pytest.approx(1180, abs=60)
    assert refused["calls"] == {"unavailable": 8}
    slow = found["outage", "forecast", "b"]
    assert slow["timeout"] == (
        "a probe timeout of 10 s would have met it: the answer came after 9.3 s (it is 5 s)"
    )
    assert slow["evidence"][-1]["late"] is True
    assert found["refusal", "search", "a"]["telemetry_lost"] == 12
    assert found["refusal", "tickets", "c"]["end"] is None
    stalled = found["outage", "wiki", "c"]
    assert "the event loop stood still for 5.2 s" in " ".join(stalled["before"])
    assert stalled["before"][-1].endswith("also fell: mail, tickets")
    crash = found["outage", "wiki", "a"]
    assert crash["why"] == ["its process or connection ended: exit, exit code 1"]
    assert "KeyError: 'DATABASE_URL'" in " ".join(crash["before"])


async def test_the_same_incident_has_the_same_name_wherever_it_is_read(
    folders: list[Path], tmp_path: Path
) -> None:
    index = tmp_path / "kept.sqlite"
    first = incidents(Sources(state_dirs=tuple(folders), index=index), WEEK)
    assert index.stat().st_mode & 0o777 == 0o600
    again = incidents(Sources(state_dirs=tuple(folders), index=index), WEEK)
    assert again == first
    index.write_bytes(b"no database at all" * 1000)
    assert incidents(Sources(state_dirs=tuple(folders), index=index), WEEK) == first
    only_c = by_name(incidents(Sources(state_dirs=(folders[2],)), WEEK))
    both = by_name(first)
    key = ("downgrade", "billing", "c")
    assert only_c[key]["id"] == both[key]["id"]


async def test_a_collectors_files_of_all_hosts_say_the_same(
    folders: list[Path], tmp_path: Path
) -> None:
    requests = [json.loads(line) for line in lines_of(folders)]
    batches = [requests[i : i + 50] for i in range(0, len(requests), 50)]
    written = b"".join(
        json.dumps(
            {"resourceSpans": [one for each in batch for one in each["resourceSpans"]], "new": 1}
        ).encode()
        + b"\n"
        for batch in batches
    )
    (tmp_path / "collector").mkdir()
    half = written.index(b"\n", len(written) // 2) + 1
    (tmp_path / "collector" / "spans-1.json.gz").write_bytes(gzip.compress(written[:half]))
    (tmp_path / "collector" / "spans.json").write_bytes(
        b'{"resourceMetrics":[]}\n' + written[half:] + b'{"resourceSpans":[{"scopeSp'
    )
    found = incidents(Sources(files=(tmp_path / "collector",)), WEEK)
    assert classes(found) == EXPECTED
    assert found["unreadable"] == 1
    everything = Sources(state_dirs=tuple(folders), files=(tmp_path / "collector",))
    told = incidents(everything, WEEK)
    assert classes(told) == EXPECTED
    assert [one["calls"] for one in told["incidents"]] == [
        one["calls"] for one in found["incidents"]
    ]


async def test_a_question_is_answered_for_its_time_and_its_server(folders: list[Path]) -> None:
    sources = Sources(state_dirs=tuple(folders))
    tuesday = SINCE + 86_400 * SECOND
    day = Question(since_ns=tuesday, until_ns=tuesday + 86_400 * SECOND)
    counts = Counter(one["server"] for one in incidents(sources, day)["incidents"])
    assert counts == {"billing": 4}, "an allowed old server is told on its first day only"
    thursday = Question(since_ns=SINCE + 3 * 86_400 * SECOND, until_ns=WEEK.until_ns)
    kinds = [
        (one["server"], one["kind"])
        for one in incidents(sources, thursday)["incidents"]
        if one["end"] is None
    ]
    assert kinds == [("tickets", "refusal")]
    one_server = Question(since_ns=SINCE, until_ns=WEEK.until_ns, server="wiki")
    assert {one["server"] for one in incidents(sources, one_server)["incidents"]} == {"wiki"}


def test_without_any_record_nothing_is_claimed(tmp_path: Path) -> None:
    found = incidents(Sources(state_dirs=(tmp_path / "absent",)), WEEK)
    assert (found["incidents"], found["telemetry_lost"], found["hosts"]) == ([], None, [])
