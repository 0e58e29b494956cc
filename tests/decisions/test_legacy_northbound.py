"""What clients of the legacy revisions are offered, and in which words they are refused."""

from __future__ import annotations

import pytest

from observant_host.decisions.legacy_northbound import (
    agreed,
    capabilities_in,
    identity_in,
    known_header,
    legacy_code,
    loud_enough,
)
from observant_host.wire.revisions import LEGACY, MODERN, MODERN_ERRORS
from tests.support.published import defined


@pytest.mark.parametrize("revision", LEGACY)
def test_a_legacy_revision_that_is_asked_for_is_agreed_to(revision: str) -> None:
    assert agreed(revision) == revision


@pytest.mark.parametrize("asked", ["2026-07-28", "1999-01-01", "", None, 5, [], {}])
def test_for_any_other_our_latest_legacy_one_is_offered(asked: object) -> None:
    assert agreed(asked) == "2025-11-25"


def test_the_version_header_may_be_absent_or_a_legacy_revision() -> None:
    assert all(known_header(one) for one in (None, *LEGACY))
    assert not any(known_header(one) for one in ("", "1999-01-01", *MODERN))


@pytest.mark.parametrize("revision", LEGACY)
def test_capabilities_and_identity_are_those_that_the_revision_has_words_for(
    revision: str,
) -> None:
    ours = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}, "completions": {}}
    known = set(defined(revision, "ServerCapabilities")["properties"])
    assert set(capabilities_in(ours, revision)) == set(ours) & known
    identity = {"name": "n", "title": "N", "version": "1"}
    known = set(defined(revision, "Implementation")["properties"])
    assert set(identity_in(identity, revision)) == set(identity) & known


def test_a_resource_that_is_not_there_has_its_own_code() -> None:
    assert legacy_code("resources/read", -32602) == -32002
    assert legacy_code("tools/call", -32602) == -32602
    assert legacy_code("resources/read", -32603) == -32603
    assert {legacy_code("tools/call", code) for code in MODERN_ERRORS} == {-32603}


@pytest.mark.parametrize(
    ("level", "wanted", "told"),
    [
        ("debug", None, False),
        ("info", None, True),
        ("info", "warning", False),
        ("error", "warning", True),
        ("warning", "warning", True),
        ("", "emergency", True),
    ],
)
def test_a_log_message_is_told_from_the_wanted_level_on(
    level: str, wanted: str | None, told: bool
) -> None:
    assert loud_enough(level, wanted) is told
