"""Every fault of a declared table, on two real hosts, and what Alertmanager holds then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.dashboards.alert_files import names
from tests.dashboards.end_to_end.night import FACTOR, night_of
from tests.dashboards.end_to_end.table import FAULTS, GONE, Key, inhibited, may, must
from tests.dashboards.end_to_end.watching import judged

if TYPE_CHECKING:
    from pathlib import Path


def test_the_table_names_alerts_that_exist_and_each_fault_once() -> None:
    assert {key.alert for key in may()} <= set(names())
    told = [fault.name for fault in (*FAULTS, GONE)]
    assert len(told) == len(set(told))


def test_what_is_missing_extra_loud_or_silent_is_told() -> None:
    right = dict.fromkeys(must(), 1.0)
    assert judged(right, inhibited(), wanted=must(), gone=False) == []
    down = Key("PeerDown", "b", "down")
    extra = Key("PeerDown", "b", "works")
    held = next(iter(inhibited()))
    wrong = {key: 1.0 for key in (*right, extra) if key != Key("LegacyRefused", "b", "old")}
    told = judged(wrong, (inhibited() | {down}) - {held}, wanted=must(), gone=False)
    assert [line.split(":")[0] for line in told] == [
        "did not reach Alertmanager",
        "is not in the table",
        "should be inhibited",
        "should not be inhibited",
    ]


@pytest.mark.prometheus
@pytest.mark.timeout(400)
def test_every_fault_reaches_alertmanager_and_nothing_else_does(tmp_path: Path) -> None:
    found = night_of(tmp_path, FACTOR)
    print(f"\n{found.text()}")
    assert found.problems == []
