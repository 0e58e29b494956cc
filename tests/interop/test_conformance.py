"""The official conformance suite's client scenarios, at both wires, and what a host that allows
nothing old leaves on the wire of an old server: nothing."""

from __future__ import annotations

import pytest

from tests.interop.conformance_driver import LEGACY, MODERN, Outcome, run_all

pytestmark = pytest.mark.interop


def by_name(outcomes: list[Outcome]) -> dict[str, Outcome]:
    return {one.scenario: one for one in outcomes}


@pytest.fixture(scope="module")
def modern(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return by_name(run_all("2026-07-28", tmp_path_factory.mktemp("modern")))


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return by_name(run_all("2025-11-25", tmp_path_factory.mktemp("legacy")))


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("refused")
    return by_name(run_all("2025-11-25", folder, OBSERVANT_CONF_ALLOW="none"))


@pytest.mark.parametrize("scenario", MODERN)
def test_a_modern_scenario_passes(modern: dict[str, Outcome], scenario: str) -> None:
    assert modern[scenario].verdict == "PASS", str(modern[scenario])


@pytest.mark.parametrize("scenario", LEGACY)
def test_a_legacy_scenario_passes_where_its_url_is_allowed(
    legacy: dict[str, Outcome], scenario: str
) -> None:
    assert legacy[scenario].verdict == "PASS", str(legacy[scenario])


def test_without_an_allowance_no_initialize_reaches_the_wire(refused: dict[str, Outcome]) -> None:
    assert refused["initialize"].checks == []


@pytest.mark.parametrize("scenario", LEGACY)
def test_without_an_allowance_the_host_refuses_and_says_so(
    refused: dict[str, Outcome], scenario: str
) -> None:
    assert refused[scenario].verdict != "PASS"
    assert "refused: unavailable: ambiguous_" in refused[scenario].said
