"""Runs client scenarios of the official MCP conformance suite one by one, and judges strictly.

python -m tests.interop.conformance_driver REVISION [SCENARIO…] [--out FOLDER]

The suite's own way of running many ignores the client's exit code and ticks a scenario that checked
nothing. Here a scenario passes only where something was checked, nothing failed or warned, and our
client ended well. Mock servers are kept on loopback.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from tests.interop import provisions

HERE = Path(__file__).parent
JOBS = 2
SCENARIO_LIMIT_S = 90
MODERN = (
    "tools_call",
    "request-metadata",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "sep-2322-client-request-state",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
)
LEGACY = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "json-schema-2020-12-preservation",
)
SCENARIOS = {"2026-07-28": MODERN, "2025-11-25": LEGACY}
"""All that exist but those of OAuth, and of extensions."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`checks` as the suite saved them, None where it saved none; `code` is the client's and the
    suite's together: 0 only if both ended well."""

    scenario: str
    code: int
    checks: list[dict[str, Any]] | None
    said: str

    @property
    def verdict(self) -> str:
        """PASS, FAIL, VACUOUS (nothing was checked) or CLIENT-ERROR."""
        statuses = {check["status"] for check in self.checks or ()}
        if statuses & {"FAILURE", "WARNING"}:
            return "FAIL"
        if "SUCCESS" not in statuses:
            return "VACUOUS"
        return "CLIENT-ERROR" if self.code else "PASS"

    @property
    def failed(self) -> bool:
        """Some check failed: warnings are left out."""
        return any(check["status"] == "FAILURE" for check in self.checks or ())

    @property
    def passed(self) -> int:
        return sum(check["status"] == "SUCCESS" for check in self.checks or ())

    @property
    def short(self) -> str:
        """The verdict, and how many checks passed."""
        return f"{self.verdict} {self.passed}"

    def __str__(self) -> str:
        bad = [
            f"\n    {check['status']} {check['id']}: {check.get('errorMessage', '')}"
            for check in self.checks or ()
            if check["status"] in ("FAILURE", "WARNING")
        ]
        said = "" if self.verdict == "PASS" else f"\n    client: {self.said[-600:].strip()}"
        return f"{self.verdict:<13}{self.scenario:<40}{self.passed:>3} ok{''.join(bad)}{said}"


def run(scenario: str, revision: str, out: Path, **variables: str) -> Outcome:
    """One scenario with our client; `out` gets what the suite saves."""
    folder = out / scenario
    # exec: the suite starts it by a shell, and would otherwise wait for a client it has ended.
    client = f"exec {sys.executable} {HERE / 'conformance_client.py'}"
    done = subprocess.run(
        [
            *suite(),
            "client",
            f"--scenario={scenario}",
            f"--spec-version={revision}",
            f"--command={client}",
            "--timeout=60000",
            "-o",
            str(folder),
        ],
        capture_output=True,
        text=True,
        timeout=SCENARIO_LIMIT_S,
        env={**os.environ, **variables},
        check=False,
    )
    saved = list(folder.rglob("checks.json"))
    said = "".join(path.read_text() for path in folder.rglob("stderr.txt"))
    checks = json.loads(saved[0].read_text()) if saved else None
    return Outcome(scenario=scenario, code=done.returncode, checks=checks, said=said or done.stderr)


def run_all(
    revision: str, out: Path, scenarios: tuple[str, ...] = (), **variables: str
) -> list[Outcome]:
    """A few at a time: the suite's one about retry timing needs a machine that is not swamped."""
    with ThreadPoolExecutor(JOBS) as pool:
        wanted = scenarios or SCENARIOS[revision]
        return list(pool.map(lambda one: run(one, revision, out, **variables), wanted))


def suite() -> list[str]:
    """The command line of the suite, on a node that it runs on."""
    folder = provisions.node_folder(HERE / "conformance")
    script = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    return [str(node()), f"--require={folder / 'loopback.cjs'}", str(script)]


def node() -> Path:
    """The node that comes with the suite's packages: newer than many machines have."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
    folder = provisions.node_folder(HERE / "conformance")
    return folder / f"node_modules/node-linux-{machine}/bin/node"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("revision", choices=SCENARIOS)
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(options.out or folder)
        outcomes = run_all(options.revision, out, tuple(options.scenarios))
    print(*outcomes, sep="\n")
    good = sum(one.verdict == "PASS" for one in outcomes)
    print(f"{good} of {len(outcomes)} passed strictly")
    return int(good != len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
