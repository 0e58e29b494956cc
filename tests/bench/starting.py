"""Many servers to ready, and what importing costs: ours beside a bare loop and the official SDK.

python -m tests.bench.starting [COUNT] [ROUNDS]     a table: minima of interleaved rounds

Each run is a process of its own. The official SDK needs an interpreter that has it, named by
MCP_PYTHON; without one its rows are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, Literal

STARTERS: Final = Path(__file__).parent / "starters"
Client = Literal["ours", "as_run", "bare", "official_sdk"]
IMPORTS: Final[dict[Client, str]] = {
    "ours": "from observant_host import Host, HttpServer, StdioServer",
    "as_run": "import observant_host.cli.main",
    "bare": "import asyncio, json",
    "official_sdk": "from mcp import Client, StdioServerParameters",
}
FILES_EACH: Final = 5
"""Three pipes, a pidfd, and room for one in the making."""


def server_command(*, tools: int = 10, python: str = sys.executable) -> list[str]:
    """argv of the least server there is."""
    return [python, "-I", "-S", str(STARTERS / "minimal_server.py"), "--tools", str(tools)]


def started(
    client: Client, count: int, *, tools: int = 10, python: str | None = None
) -> dict[str, float]:
    """One run, seconds and MiB: ready_s, cpu_s, stall_ms, stall_cpu_ms, threads, rss_mib, modules,
    tools. `python`: the interpreter of the client; its servers run by ours."""
    runner = f"import resource as r, runpy, sys; n = {FILES_EACH} * int(sys.argv[1]) + 256; "
    runner += "h = r.getrlimit(r.RLIMIT_NOFILE)[1]; r.setrlimit(r.RLIMIT_NOFILE, (min(n, h), h)); "
    runner += f"sys.path.insert(0, {str(STARTERS)!r}); "
    runner += f"runpy.run_path({str(STARTERS / client)!r} + '.py', run_name='__main__')"
    argv = [_python(client, python), "-c", runner, str(count), *server_command(tools=tools)]
    return _said(argv)


def imported(client: Client, *, python: str | None = None) -> dict[str, float]:
    """One run, milliseconds: cpu_ms and wall_ms of the import, rss_mib and modules after it."""
    code = (
        f"import json, sys, time; sys.path.insert(0, {str(STARTERS)!r}); "
        f"cpu, wall = time.process_time(), time.perf_counter(); {IMPORTS[client]}; "
        "cpu, wall = time.process_time() - cpu, time.perf_counter() - wall; "
        "from meter import rss_mib; "
        "print(json.dumps(dict(cpu_ms=cpu * 1e3, wall_ms=wall * 1e3, rss_mib=rss_mib(), "
        "modules=len(sys.modules))))"
    )
    return _said([_python(client, python), "-c", code])


def available() -> tuple[Client, ...]:
    """Clients that can run here."""
    rivals: tuple[Client, ...] = ("official_sdk",) if "MCP_PYTHON" in os.environ else ()
    return ("ours", "as_run", "bare", *rivals)


def smallest(runs: list[dict[str, float]]) -> dict[str, float]:
    """What else the machine does adds to some runs only."""
    return {key: min(run[key] for run in runs) for key in runs[0]}


def _python(client: Client, python: str | None) -> str:
    return python or (os.environ["MCP_PYTHON"] if client == "official_sdk" else sys.executable)


def _said(argv: list[str]) -> dict[str, float]:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said


def main(argv: list[str]) -> None:
    count, rounds = (int(argv[0]) if argv else 50), (int(argv[1]) if argv[1:] else 3)
    runs: dict[Client, list[dict[str, float]]] = {client: [] for client in available()}
    imports: dict[Client, list[dict[str, float]]] = {client: [] for client in available()}
    for _ in range(rounds):
        for client in runs:
            imports[client].append(imported(client))
            runs[client].append(started(client, count))
    print(f"| {count} servers | ready s | CPU s | stall ms (CPU) | threads | RSS MiB | import ms |")
    print(f"|{'---|' * 7}")
    for client, every in runs.items():
        one, imp = smallest(every), smallest(imports[client])
        print(
            f"| {client} | {one['ready_s']:.2f} | {one['cpu_s']:.2f} | {one['stall_ms']:.0f} "
            f"({one['stall_cpu_ms']:.0f}) | {one['threads']:.0f} | {one['rss_mib']:.1f} "
            f"| {imp['cpu_ms']:.0f} |"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
