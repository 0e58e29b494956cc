"""Every answer to `server/discover`, given by a server that also answers `initialize`: which era
comes of it, and what was written to it. Without an allowance none is ever sent `initialize`."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.interop.eras.run_eras import ANSWERS, run_one

pytestmark = pytest.mark.interop

JOBS = 3
INITIALIZED = {
    "-32601",
    "-32603",
    "empty result",
    "result+error",
    "wrong id",
    "silent",
    "close",
    "garbage",
}
"""What proves nothing, answered well to `initialize` where that is allowed: found legacy."""
REFUSED_AFTER_ALL = {
    "bad init: no name": "legacy_probe_invalid",
    "bad init: future version": "legacy_unsupported_revision",
    "bad init: silent": "legacy_probe_timeout",
}
"""The same, answered badly."""
MODERN = {"ok", "slow 12 s"}
REASONS = {
    "-32601": "ambiguous_error",
    "-32603": "ambiguous_error",
    "-32020": "modern_error_unfixable",
    "-32021": "modern_error_unfixable",
    "-32022 legacy list": "legacy_only_advertised",
    "-32022 future only": "no_mutual_version",
    "-32022 no data": "modern_error_unfixable",
    "empty result": "ambiguous_empty",
    "result+error": "ambiguous_malformed",
    "wrong id": "ambiguous_malformed",
    "legacy versions": "legacy_only_advertised",
    "silent": "ambiguous_timeout",
    "close": "ambiguous_closed",
    "garbage": "ambiguous_malformed",
    "bad init: no name": "ambiguous_error",
    "bad init: future version": "ambiguous_error",
    "bad init: silent": "ambiguous_error",
}
"""Why a server that gives this answer is unavailable where no allowance exists."""


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], dict[str, Any]]:
    """All of them, a few at a time: most of each is waiting."""
    jobs = [(client, answer) for client in ("ours", "ours-allowed") for answer in ANSWERS]
    options = argparse.Namespace(python_mcp=None, python_fastmcp=None, node_folder=None)
    with ThreadPoolExecutor(JOBS) as pool:
        found = pool.map(lambda job: run_one(*job, options), jobs)
        return dict(zip(jobs, found, strict=True))


def test_every_answer_is_expected_somewhere() -> None:
    assert MODERN | set(REASONS) == set(ANSWERS)
    assert INITIALIZED | set(REFUSED_AFTER_ALL) < set(ANSWERS)


@pytest.mark.parametrize("answer", ANSWERS)
def test_without_an_allowance_no_answer_leads_to_initialize(
    rows: dict[tuple[str, str], dict[str, Any]], answer: str
) -> None:
    row = rows["ours", answer]
    assert "initialize" not in row["wire"]
    assert row["wire"][0] == "server/discover"
    if answer in MODERN:
        assert row["era"] == "modern"
    else:
        assert row["error"] == f"unavailable: {REASONS[answer]}"


@pytest.mark.parametrize("answer", ANSWERS)
def test_with_an_allowance_only_what_proves_nothing_leads_to_one_initialize(
    rows: dict[tuple[str, str], dict[str, Any]], answer: str
) -> None:
    row = rows["ours-allowed", answer]
    if answer in INITIALIZED:
        assert row["wire"].count("initialize") == 1
        assert row["era"] == "legacy"
        assert "notifications/initialized" in row["wire"]
    elif answer in REFUSED_AFTER_ALL:
        assert row["error"] == f"unavailable: {REFUSED_AFTER_ALL[answer]}"
        assert "initialize" in row["wire"]
        assert "notifications/initialized" not in row["wire"]
    elif answer == "slow 12 s":
        assert row["era"] == "modern"
        assert row["wire"].count("initialize") == 1  # within probe_timeout_s = 5 it was silent
    else:
        assert "initialize" not in row["wire"]
