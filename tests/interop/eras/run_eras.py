"""Which era each client library picks for each answer to `server/discover`, and what it sent.

python -m tests.interop.eras.run_eras [--clients ours,ours-allowed,mcp,fastmcp,ts] [--out FILE]

Ours needs nothing but this project; what the others need is installed into the interop cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.interop import provisions

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
LIMIT_S = 70
"""The longest row takes 25 s by itself; the rest is a machine with other work."""
STDIO = [
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
HTTP = [
    "ok",
    "400",
    "400 -32601",
    "400 -32020",
    "400 -32021",
    "404",
    "401",
    "403",
    "405",
    "429",
    "500",
    "503",
    "200 -32603",
    "reset",
    "slow 12 s",
]
ANSWERS = [*(("stdio", one) for one in STDIO), *(("http", one) for one in HTTP)]
"""(transport, answer): for stdio scripted_stdio.py, for HTTP scripted_http.py."""

SHORT = {
    "server/discover": "discover",
    "notifications/initialized": "initialized",
    "notifications/cancelled": "cancelled",
}


def command(client: str, transport: str, target: list[str] | str) -> list[str]:
    if client == "ts":
        return ["node", str(HERE / "connect_once.mjs"), transport, json.dumps(target)]
    environment = {"mcp": "python_sdk_2", "fastmcp": "fastmcp_4"}.get(client)
    python = sys.executable if environment is None else str(provisions.python_with(environment))
    return [python, str(HERE / "connect_once.py"), client, transport, json.dumps(target)]


@contextmanager
def target_of(transport: str, answer: str, log: Path) -> Iterator[list[str] | str]:
    """argv of a stdio server that the client starts, or the URL of one that runs in the block."""
    server = str(HERE / f"scripted_{transport}.py")
    argv = [sys.executable, "-I", "-S", server, "--case", answer, "--log", str(log)]
    if transport == "stdio":
        yield argv
        return
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        process.terminate()


def run_one(client: str, transport: str, answer: str) -> dict[str, Any]:
    """One row: {"client", "transport", "answer", "wire": [methods received], "era" | "error", "s"}.

    A GET or DELETE is in `wire` by that name.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "wire.log"
        log.touch()
        with target_of(transport, answer, log) as target:
            result = _result_of(command(client, transport, target), client)
        wire = log.read_text().split()
    return {"client": client, "transport": transport, "answer": answer, "wire": wire, **result}


def _result_of(argv: list[str], client: str) -> dict[str, Any]:
    folder = provisions.node_folder(HERE / "typescript_client") if client == "ts" else None
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=LIMIT_S, cwd=folder, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"hung over {LIMIT_S} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return json.loads(lines[-1][7:]) if lines else {"error": "crash: " + done.stderr[-300:]}


def table(rows: list[dict[str, Any]], clients: list[str]) -> str:
    out = [
        "| | answer to server/discover | " + " | ".join(clients) + " |",
        "|---|---|" + "---|" * len(clients),
    ]
    found = {(row["client"], row["transport"], row["answer"]): row for row in rows}
    for transport, answer in ANSWERS:
        cells = []
        for client in clients:
            row = found[client, transport, answer]
            verdict = f"**{row['era']}**" if "era" in row else row["error"].replace("|", "/")
            wire = ", ".join(SHORT.get(method, method) for method in row["wire"])
            cells.append(f"{verdict} ({row.get('s', '?')} s; {wire})")
        out.append(f"| {transport} | {answer} | " + " | ".join(cells) + " |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", default="ours,ours-allowed")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--out")
    options = parser.parse_args()
    clients = options.clients.split(",")
    jobs = [(client, *answer) for client in clients for answer in ANSWERS]
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda job: run_one(*job), jobs))
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    print(table(rows, clients))


if __name__ == "__main__":
    main()
