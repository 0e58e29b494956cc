"""Which era each client library picks for each answer to `server/discover`, and what it sent.

python -m tests.interop.eras.run_eras [--clients ours,ours-allowed,mcp,fastmcp,ts]
    [--python-mcp PATH] [--python-fastmcp PATH] [--node-folder PATH] [--out FILE]

Ours needs nothing but this project. The peers need an interpreter each with `mcp==2.3.0` or
`fastmcp>=4`, and a folder in which `npm install @modelcontextprotocol/client@2.4.0` was run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ANSWERS = [
    "ok",
    "-32601",
    "-32603",
    "-32020",
    "-32021",
    "-32022 legacy list",
    "-32022 future only",
    "-32022 no data",
    "empty result",
    "result+error",
    "wrong id",
    "legacy versions",
    "slow 12 s",
    "silent",
    "close",
    "garbage",
    "bad init: no name",
    "bad init: future version",
    "bad init: silent",
]
SHORT = {
    "server/discover": "discover",
    "notifications/initialized": "initialized",
    "notifications/cancelled": "cancelled",
}


def command(client: str, target: list[str], options: argparse.Namespace) -> list[str]:
    if client == "ts":
        return ["node", str(HERE / "connect_once.mjs"), "stdio", json.dumps(target)]
    python = {"mcp": options.python_mcp, "fastmcp": options.python_fastmcp}.get(client)
    return [python or sys.executable, str(HERE / "connect_once.py"), client, json.dumps(target)]


def run_one(client: str, answer: str, options: argparse.Namespace) -> dict[str, Any]:
    """One row: {"client", "answer", "wire": [methods received], "era" | "error", "s"}."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "wire.log"
        log.touch()
        server = str(HERE / "scripted_stdio.py")
        target = [sys.executable, "-I", "-S", server, "--case", answer, "--log", str(log)]
        try:
            done = subprocess.run(
                command(client, target, options),
                capture_output=True,
                text=True,
                timeout=70,
                cwd=options.node_folder if client == "ts" else None,
                check=False,
            )
            lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
            result = (
                json.loads(lines[-1][7:]) if lines else {"error": "crash: " + done.stderr[-300:]}
            )
        except subprocess.TimeoutExpired:
            result = {"error": "hung over 70 s"}
        wire = log.read_text().split()
    return {"client": client, "answer": answer, "wire": wire, **result}


def table(rows: list[dict[str, Any]], clients: list[str]) -> str:
    out = [
        "| answer to server/discover | " + " | ".join(clients) + " |",
        "|---|" + "---|" * len(clients),
    ]
    for answer in ANSWERS:
        cells = []
        for client in clients:
            row = next(r for r in rows if (r["client"], r["answer"]) == (client, answer))
            verdict = f"**{row['era']}**" if "era" in row else row["error"].replace("|", "/")
            wire = ", ".join(SHORT.get(method, method) for method in row["wire"])
            cells.append(f"{verdict} ({row.get('s', '?')} s; {wire})")
        out.append(f"| {answer} | " + " | ".join(cells) + " |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", default="ours,ours-allowed")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--python-mcp")
    parser.add_argument("--python-fastmcp")
    parser.add_argument("--node-folder", default=".")
    parser.add_argument("--out")
    options = parser.parse_args()
    clients = options.clients.split(",")
    jobs = [(client, answer) for client in clients for answer in ANSWERS]
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda job: run_one(*job, options), jobs))
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    print(table(rows, clients))


if __name__ == "__main__":
    main()
