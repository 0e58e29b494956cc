"""Every answer to `server/discover`, given by a server that also answers `initialize`: which era
comes of it, and what was written to it. Without an allowance none is ever sent `initialize`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.interop.eras.run_eras import ANSWERS, run_one

pytestmark = pytest.mark.interop

JOBS = 3
Answer = tuple[str, str]
Rows = dict[tuple[str, str, str], dict[str, Any]]

MODERN: dict[Answer, str] = {("stdio", "ok"): "", ("http", "ok"): "", ("stdio", "slow 12 s"): ""}
"""Found modern in the end, allowed or not."""

UNPROVEN: dict[Answer, str] = {
    ("stdio", "-32601"): "ambiguous_error",
    ("stdio", "-32603"): "ambiguous_error",
    ("stdio", "empty result"): "ambiguous_empty",
    ("stdio", "result+error"): "ambiguous_malformed",
    ("stdio", "wrong id"): "ambiguous_malformed",
    ("stdio", "silent"): "ambiguous_timeout",
    ("stdio", "close"): "ambiguous_closed",
    ("stdio", "garbage"): "ambiguous_malformed",
    ("http", "400"): "ambiguous_error",
    ("http", "400 -32601"): "ambiguous_error",
    ("http", "404"): "ambiguous_error",
    ("http", "405"): "ambiguous_error",
    ("http", "200 -32603"): "ambiguous_error",
}
"""Proves nothing: refused with this reason; with an allowance, legacy by one `initialize`."""

BADLY_INITIALIZED: dict[Answer, str] = {
    ("stdio", "bad init: no name"): "legacy_probe_invalid",
    ("stdio", "bad init: future version"): "legacy_unsupported_revision",
    ("stdio", "bad init: silent"): "legacy_probe_timeout",
}
"""-32601, then with an allowance an `initialize` that is answered badly: refused with this."""

REFUSED: dict[Answer, str] = {
    ("stdio", "-32020"): "modern_error_unfixable",
    ("stdio", "-32021"): "modern_error_unfixable",
    ("stdio", "-32022 legacy list"): "legacy_only_advertised",
    ("stdio", "-32022 future only"): "no_mutual_version",
    ("stdio", "-32022 no data"): "modern_error_unfixable",
    ("stdio", "legacy versions"): "legacy_only_advertised",
    ("http", "400 -32020"): "modern_error_unfixable",
    ("http", "400 -32021"): "modern_error_unfixable",
    ("http", "401"): "auth_required",
    ("http", "403"): "forbidden",
    ("http", "429"): "rate_limited",
    ("http", "500"): "http_unavailable",
    ("http", "503"): "http_unavailable",
    ("http", "reset"): "unreachable",
    ("http", "slow 12 s"): "unreachable",
}
"""Modern evidence, or no evidence at all: no allowance changes anything."""


@pytest.fixture(scope="module")
def rows() -> Rows:
    """All of them, a few at a time: most of each is waiting."""
    jobs = [(client, *answer) for client in ("ours", "ours-allowed") for answer in ANSWERS]
    with ThreadPoolExecutor(JOBS) as pool:
        found = pool.map(lambda job: run_one(*job), jobs)
        return dict(zip(jobs, found, strict=True))


def test_something_is_expected_of_every_answer() -> None:
    kinds = (MODERN, UNPROVEN, BADLY_INITIALIZED, REFUSED)
    assert sorted(answer for kind in kinds for answer in kind) == sorted(ANSWERS)
    assert len(ANSWERS) == 34


@pytest.mark.parametrize("answer", ANSWERS, ids=" ".join)
def test_without_an_allowance_no_answer_leads_to_initialize(rows: Rows, answer: Answer) -> None:
    row = rows["ours", *answer]
    assert row["wire"][0] == "server/discover"
    assert "initialize" not in row["wire"]
    if answer in MODERN:
        assert row["era"] == "modern"
    else:
        badly = dict.fromkeys(BADLY_INITIALIZED, "ambiguous_error")
        assert row["error"] == f"unavailable: {(UNPROVEN | badly | REFUSED)[answer]}"


@pytest.mark.parametrize("answer", ANSWERS, ids=" ".join)
def test_with_an_allowance_only_what_proves_nothing_leads_to_initialize(
    rows: Rows, answer: Answer
) -> None:
    row = rows["ours-allowed", *answer]
    wire = row["wire"]
    if answer in UNPROVEN:
        assert row["era"] == "legacy"
        assert (wire.count("initialize"), wire.count("notifications/initialized")) == (1, 1)
    elif answer in BADLY_INITIALIZED:
        assert row["error"] == f"unavailable: {BADLY_INITIALIZED[answer]}"
        assert "initialize" in wire
        assert "notifications/initialized" not in wire
    elif answer in MODERN:
        assert row["era"] == "modern"
        # Silent for longer than probe_timeout_s is what proves nothing; the late answer does.
        assert wire.count("initialize") == (answer[1] == "slow 12 s")
    else:
        assert row["error"] == f"unavailable: {REFUSED[answer]}"
        assert "initialize" not in wire
