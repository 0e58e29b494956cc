"""Branch coverage: 100 % in the pure rooms (exclusions counted aloud), 90 % in all the others."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PURE = ("wire/", "decisions/", "config/", "config.py", "foreign_config.py", "peers/pending.py")
OTHERS_AT_LEAST = 90.0


def is_pure(path: str) -> bool:
    return path.removeprefix("observant_host/").startswith(PURE)


def measured() -> dict[str, dict]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        subprocess.run(
            [sys.executable, "-m", "coverage", "json", "-q", "-o", str(report)], check=True
        )
        return json.loads(report.read_text())["files"]


def percent(files: list[dict]) -> float:
    def total(key: str) -> int:
        return sum(file["summary"][key] for file in files)

    possible = total("num_statements") + total("num_branches")
    return 100.0 * (total("covered_lines") + total("covered_branches")) / max(1, possible)


def main() -> int:
    files = measured()
    pure = {name: file for name, file in files.items() if is_pure(name)}
    others = {name: file for name, file in files.items() if not is_pure(name)}
    incomplete = {
        name: file
        for name, file in pure.items()
        if file["missing_lines"] or file["missing_branches"]
    }
    for name, file in sorted(incomplete.items()):
        print(f"{name}: lines {file['missing_lines']}, branches {file['missing_branches']}")
    excluded = sum(file["summary"]["excluded_lines"] for file in pure.values())
    pure_percent, others_percent = percent(list(pure.values())), percent(list(others.values()))
    print(f"pure rooms: {pure_percent:.2f} % of {len(pure)} files, {excluded} lines excluded")
    print(f"the others: {others_percent:.2f} % of {len(others)} files")
    counted = [one for one in others.items() if one[1]["summary"]["num_statements"]]
    for name, file in sorted(counted, key=lambda item: percent([item[1]]))[:8]:
        print(f"  {percent([file]):6.2f} %  {name}")
    return int(bool(incomplete) or others_percent < OTHERS_AT_LEAST)


if __name__ == "__main__":
    sys.exit(main())
