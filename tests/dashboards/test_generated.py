"""What is generated and checked in is what the generator makes now."""

from __future__ import annotations

import pytest

from dashboards.generate.__main__ import ROOT, outputs
from dashboards.generate.promql import COMING, query
from observant_host.telemetry.metric_list import METRICS
from tests.dashboards.grafana import FILES, every_query, metrics_of

UNSHOWN: dict[str, str] = {}
"""Metrics that no dashboard shows, each with the reason."""


@pytest.mark.parametrize("path", outputs())
def test_a_generated_file_is_current(path: str) -> None:
    assert (ROOT / path).read_text() == outputs()[path], "run: python -m dashboards.generate"


def test_every_metric_is_shown_on_a_dashboard_or_said_not_to_be() -> None:
    shown = set[str]().union(*(metrics_of(one.expr) for f in FILES for one in every_query(f)))
    missing = METRICS.keys() - shown - UNSHOWN.keys()
    assert not missing, "add a panel (dashboards/generate), or a reason to UNSHOWN"
    assert not UNSHOWN.keys() & shown


def test_a_metric_that_nothing_emits_cannot_be_asked_for() -> None:
    for name in (*COMING, "observant_host_nonsense"):
        with pytest.raises(KeyError):
            query(":" + name.removeprefix("observant_host_"))


def test_short_hand_becomes_a_query_with_the_variables_of_its_dashboard() -> None:
    assert query('rate(:calls_total{outcome="ok"}[R])', scope='peer=~"$peer"') == (
        'rate(observant_host_calls_total{peer=~"$peer",outcome="ok"}[$__rate_interval])'
    )
