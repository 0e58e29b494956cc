"""Large things work, or fail by their bound and alone, in time and memory that grow as they do."""

from __future__ import annotations

import pytest

from tests.bench.bounds import SIZES_MIB, measured

pytestmark = pytest.mark.soak

MEMORY_A_MIB = 4
"""MiB of memory for each MiB of a message: its pieces, the whole, and its decoded text."""

CPU_A_MIB_S = 0.05
"""Seconds a MiB: a fifth of a microsecond a byte is far above what was measured (0.01 s), and far
below what anything that reads a message twice for each of its pieces would take."""


@pytest.mark.parametrize("case", SIZES_MIB)
def test_a_large_message_costs_in_proportion_and_holds_nobody_up(case: str) -> None:
    for mib in (SIZES_MIB[case][0], SIZES_MIB[case][-1]):
        one = measured(case, mib)
        assert one["outcome"] == f"{mib} MiB"
        assert one["cpu_s"] < 0.5 + CPU_A_MIB_S * mib, one
        assert one["grew_mib"] < 10 + MEMORY_A_MIB * mib, one
        assert one["others"][0] == one["others"][1] > 0


@pytest.mark.parametrize("case", SIZES_MIB)
def test_a_message_beyond_its_bound_costs_one_call(case: str) -> None:
    one = measured(case, 30, default_bound=True)
    assert one["outcome"].startswith("invalid_result: ")
    assert "max_message_bytes" in one["outcome"]
    assert "then dead" not in one["outcome"]
    assert one["grew_mib"] < 10 + MEMORY_A_MIB * 16, one
    assert one["others"][0] == one["others"][1] > 0


def test_ten_thousand_tools_on_a_hundred_pages_are_all_listed() -> None:
    one = measured("10,000 tools", 0)
    assert one["outcome"] == "10002 tools"
    assert one["cpu_s"] < 5, one
    assert one["others"][0] == one["others"][1] > 0
