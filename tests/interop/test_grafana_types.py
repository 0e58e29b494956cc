"""The dashboards as Grafana's own types read them: no key that Grafana does not know."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.interop.provisions import HERE, python_with

pytestmark = pytest.mark.interop

DASHBOARDS = Path(__file__).parents[2] / "dashboards/grafana"

OF_PROMETHEUS = {
    f".annotations.list[].{key}"
    for key in ("step", "tagKeys", "textFormat", "titleFormat", "useValueForTime")
}
"""Keys of an annotation that its data source reads, not Grafana."""

SHOWN = {".templating.list[].definition"}
"""What the list of variables shows; Grafana writes it and its types do not know it."""


def read(*files: Path) -> dict[str, list[str]]:
    done = subprocess.run(
        [str(python_with("grafana_11")), str(HERE / "read_dashboards.py"), *map(str, files)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_grafana_knows_every_key_of_every_dashboard() -> None:
    files = sorted(DASHBOARDS.glob("*.json"))
    found = read(*files)
    assert len(found) == len(files) == 3
    for file, lost in found.items():
        assert set(lost) <= OF_PROMETHEUS | SHOWN, file


def test_a_key_that_it_does_not_know_would_be_noticed(tmp_path: Path) -> None:
    spoilt = tmp_path / "fleet.json"
    spoilt.write_text((DASHBOARDS / "fleet.json").read_text().replace("lineWidth", "lineWidht"))
    assert ".panels[].fieldConfig.defaults.custom.lineWidht" in read(spoilt)["fleet.json"]
