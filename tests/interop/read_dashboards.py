"""Reads dashboards with Grafana's own types and says what did not survive.

Run by the interpreter of `locks/grafana_11.txt`: `python read_dashboards.py FILE…` prints
{file name: [path, …]}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

EMPTY: tuple[object, ...] = (None, False, "", [], {})


def lost(given: Any, back: Any, path: str) -> set[str]:
    """Paths of what `given` has and `back` has not, or has differently."""
    if isinstance(given, dict) and isinstance(back, dict):
        found = set()
        for key, value in given.items():
            if key in back:
                found |= lost(value, back[key], f"{path}.{key}")
            elif value not in EMPTY:
                found.add(f"{path}.{key}")
        return found
    if isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        pairs = zip(given, back, strict=True)
        return set[str]().union(*(lost(one, other, f"{path}[]") for one, other in pairs))
    return set() if given == back else {path}


def main(files: list[str]) -> None:
    plugins.register_default_plugins()
    found = {}
    for file in map(Path, files):
        given = json.loads(file.read_text())
        back = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(given)))
        found[file.name] = sorted(lost(given, back, ""))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
