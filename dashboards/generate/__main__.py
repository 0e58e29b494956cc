"""Writes every generated file anew."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dashboards.generate.fleet import FLEET
from dashboards.generate.host import HOST
from dashboards.generate.peer import PEER

ROOT: Final = Path(__file__).parents[1]
BOARDS: Final = {"fleet": FLEET, "peer": PEER, "host": HOST}


def outputs() -> dict[str, str]:
    """Path below `dashboards/` to what belongs there."""
    return {f"grafana/{name}.json": board.text() for name, board in BOARDS.items()}


if __name__ == "__main__":
    for path, text in outputs().items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"dashboards/{path}")
