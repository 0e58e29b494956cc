"""Writes every generated file anew."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dashboards.generate.files import collector, prometheus_rule
from dashboards.generate.fleet import FLEET
from dashboards.generate.host import HOST
from dashboards.generate.peer import PEER

ROOT: Final = Path(__file__).parents[1]
BOARDS: Final = {"fleet": FLEET, "peer": PEER, "host": HOST}


def outputs() -> dict[str, str]:
    """Path below `dashboards/` to what belongs there."""

    def read(path: str) -> str:
        return (ROOT / path).read_text(encoding="utf-8")

    return {
        **{f"grafana/{name}.json": board.text() for name, board in BOARDS.items()},
        "kubernetes/prometheusrule.yaml": prometheus_rule(
            read("prometheus/rules.yaml"), read("prometheus/alerts.yaml")
        ),
        "otel-collector.yaml": collector(read("otel-collector.yaml")),
    }


if __name__ == "__main__":
    for path, text in outputs().items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"dashboards/{path}")
