"""python -m tests.bench: see --help. In a clone where nothing is installed it first makes an
environment in the user's cache folder, and runs in that one."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / ".ci/constraints.txt"
NEEDED = ("click", "msgspec", "observant_host", "platformdirs", "pytest")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "observant-host-bench"


def missing() -> list[str]:
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def environment() -> Path:
    """The interpreter of an environment for this clone, as it is pinned now."""
    recipe = f"{ROOT}\0{sys.version}\0{CONSTRAINTS.read_text()}"
    folder = CACHE / hashlib.sha256(recipe.encode()).hexdigest()[:12]
    python, whole = folder / "bin/python", folder / ".whole"
    if not whole.exists():
        print(f"installing this host and its test extras into {folder}", file=sys.stderr)
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        wanted = ("-c", str(CONSTRAINTS), "-e", f"{ROOT}[test]")
        _run(str(python), "-m", "pip", "install", "-q", *wanted)
        whole.touch()
    return python


def _run(*argv: str) -> None:
    if subprocess.run(argv, cwd=ROOT, check=False).returncode:
        sys.exit(
            f"{' '.join(argv)} failed: see above. If the package index could not be reached, name "
            "a mirror in PIP_INDEX_URL and run the same command again."
        )


if __name__ == "__main__":
    if missing():
        python = str(environment())
        os.execv(python, [python, "-m", "tests.bench", *sys.argv[1:]])
    from tests.bench.command import main

    main(prog_name="python -m tests.bench")
