"""Runs server scenarios of the official MCP conformance suite against a URL, and judges strictly.

python -m tests.interop.conformance_server REVISION [URL] [--server-from SDK]

Without a URL: against an everything-server on an SDK, directly and through a running host, side by
side. A scenario passes only where something was checked and nothing failed or warned.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from tests.interop.conformance_driver import Outcome, suite
from tests.interop.endpoint import endpoint
from tests.interop.http_servers import Kind, everything, serving

Judging = Callable[[Kind, Path, str, str], dict[str, Outcome]]

SUITE_LIMIT_S = 240
"""A run takes 4 s against a server, 8 s through a host, several times that on a busy machine."""

OPTIONAL = ("tasks-", "sep-2640-")
"""Scenarios of extensions, which no server here has."""


class Pair(msgspec.Struct, frozen=True):
    """One scenario against the server itself, and through a host."""

    direct: Outcome | None
    through: Outcome | None

    @property
    def excused(self) -> bool:
        """The server behind does not pass by itself."""
        return self.direct is None or self.direct.verdict != "PASS"

    @property
    def passes(self) -> bool:
        return self.through is not None and self.through.verdict == "PASS"


def judged(url: str, revision: str, out: Path, which: str = "--suite=all") -> dict[str, Outcome]:
    """Each scenario that exists at a revision, by its name."""
    found = run(url, revision, out, which)
    return {name: one for name, one in found.items() if not name.startswith(OPTIONAL)}


def run(url: str, revision: str, out: Path, which: str) -> dict[str, Outcome]:
    """What the suite's `--suite` or `--scenario` makes of it."""
    command = (*suite(), "server", f"--url={url}", which, f"--spec-version={revision}")
    done = subprocess.run(
        (*command, "-o", str(out)),
        capture_output=True,
        text=True,
        timeout=SUITE_LIMIT_S,
        check=False,
    )
    found = {}
    for path in sorted(out.rglob("checks.json")):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name).removeprefix("server-")
        checks = json.loads(path.read_text())
        found[name] = Outcome(scenario=name, code=0, checks=checks, said="")
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    return found


def side_by_side(folder: Path, revision: str, sdk: str = "python_sdk_2") -> dict[str, Pair]:
    """The everything-server of an SDK, directly and through a host that calls it by HTTP."""
    kind = everything(sdk)
    with ThreadPoolExecutor(2) as pool:
        direct = pool.submit(_twice, _direct, kind, folder / "direct", revision)
        through = pool.submit(_twice, _through, kind, folder / "through", revision)
        found = direct.result(), through.result()
    names = sorted(found[0].keys() | found[1].keys())
    return {name: Pair(found[0].get(name), found[1].get(name)) for name in names}


def _twice(judging: Judging, kind: Kind, folder: Path, revision: str) -> dict[str, Outcome]:
    """What only warned did not come within a second or two, which a busy machine may need: it is
    run once more, alone and with everything anew."""
    found = judging(kind, folder, revision, "--suite=all")
    for name, one in tuple(found.items()):
        if one.verdict == "FAIL" and not one.failed:
            found |= judging(kind, folder / name, revision, f"--scenario={name}")
    return found


def _direct(kind: Kind, folder: Path, revision: str, which: str) -> dict[str, Outcome]:
    folder.mkdir(parents=True)
    with serving(kind, folder / "server.log") as behind:
        return judged(behind.url, revision, folder / "out", which)


def _through(kind: Kind, folder: Path, revision: str, which: str) -> dict[str, Outcome]:
    """To a server of its own: what one run changes in a server's lists is not the other's."""
    folder.mkdir(parents=True)
    with serving(kind, folder / "server.log") as behind:
        server = {"url": behind.url, "allow_legacy": kind.allowance}
        with endpoint(folder / "host", {"everything": server}) as url:
            return judged(url, revision, folder / "out", which)


def table(pairs: dict[str, Pair]) -> str:
    lines = [f"{'scenario':<46}{'direct':<14}through a host"]
    for name, pair in pairs.items():
        direct, through = (one.short if one else "absent" for one in (pair.direct, pair.through))
        lines.append(f"{name:<46}{direct:<14}{through}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("revision", choices=("2026-07-28", "2025-11-25"))
    parser.add_argument("url", nargs="?")
    parser.add_argument("--server-from", default="python_sdk_2")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.url:
            print(*judged(options.url, options.revision, Path(folder)).values(), sep="\n")
            return
        pairs = side_by_side(Path(folder), options.revision, options.server_from)
    print(table(pairs))
    for pair in pairs.values():
        if not pair.passes:
            print(pair.through)


if __name__ == "__main__":
    main()
