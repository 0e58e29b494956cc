"""How long it takes from nothing to the first call to each of eleven servers.

python -m tests.interop.first_call --cold|--warm [--out FILE]

--cold: empty caches of pip, uv and npm, in a folder that is removed afterwards. --warm: the caches
that earlier runs filled. Both begin with an installation of this project in a new environment; what
the four servers written here are built on is installed before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop import provisions
from tests.interop.command_line import Person, marked
from tests.interop.eleven import Foreign, eleven, write_file
from tests.interop.page import serving_page

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]


class Watch:
    """Seconds of each stage, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - began, 1)
        print(f"{name:<42} {self.seconds[name]:>7.1f} s", flush=True)


def measure(folder: Path, web: str, *, cold: bool) -> dict[str, float]:
    """Seconds per stage, and `total` up to the end of the first call."""
    mark, watch = f"interop-{uuid.uuid4()}", Watch()
    caches = folder / "caches" if cold else None
    variables = {**provisions.launcher_environment(caches), "INTEROP_MARK": mark}
    if cold:
        variables["PIP_CACHE_DIR"] = str(folder / "caches/pip")
    servers = eleven(folder, web=web, mark=mark)
    write_file(folder, servers)
    with watch.stage("install observant-host in a new environment"):
        python = _installed(folder / "environment", variables)
    person = Person(folder, variables, python)
    with watch.stage("init: each server tried once"):
        found = {
            one["name"]: one
            for one in person.asks("init", "--from", ".mcp.json", "--yes")["servers"]
        }
    watch_run = watch.stage("run: until the catalogue is published")
    watch_run.__enter__()
    with person.running(folder / "observant-host.toml"):
        watch_run.__exit__(None, None, None)
        with watch.stage("the first call"):
            _call(person, "everything", servers["everything"])
        total = sum(watch.seconds.values())
        with watch.stage("a call to each of the other ten"):
            for name, server in servers.items():
                if name != "everything":
                    _call(person, name, server)
    assert marked(mark) == []
    for name, one in found.items():
        print(f"  init: {name:<22} {one['start_s']:>6.1f} s  {one['detail'][:100]}")
    return {**watch.seconds, "total": round(total, 1)}


def _call(person: Person, name: str, server: Foreign) -> None:
    told = person.calls(f"{name}/{server.tool}", server.arguments)
    assert server.answer in json.dumps(told["result"])


def _installed(folder: Path, variables: dict[str, str]) -> str:
    python = str(folder / "bin/python")
    constraints = str(PROJECT / ".ci/constraints.txt")
    for argv in (
        [sys.executable, "-m", "venv", str(folder)],
        [python, "-m", "pip", "install", "-q", "-c", constraints, str(PROJECT)],
    ):
        subprocess.run(argv, check=True, env={**variables, "HOME": str(Path.home())}, timeout=600)
    return python


def main() -> None:
    parser = argparse.ArgumentParser()
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--cold", action="store_true")
    which.add_argument("--warm", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving_page() as web:
        seconds = measure(Path(folder), web, cold=options.cold)
    minutes = seconds["total"] / 60
    print(
        f"from nothing to the first call: {minutes:.1f} min ({'cold' if options.cold else 'warm'})"
    )
    if options.out:
        Path(options.out).write_text(json.dumps(seconds, indent=1))


if __name__ == "__main__":
    main()
