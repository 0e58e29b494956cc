"""`observant-host run` in a process of its own: /metrics over HTTP, spans to a collector."""

from __future__ import annotations

import contextlib
import http.server
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.agent import KEY, MODERN
from tests.support.peers import scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.scenarios.everything import Told


class _Collector(http.server.BaseHTTPRequestHandler):
    """Takes every export."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.arrived.set()  # type: ignore[attr-defined]  # given below
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not on the tests' stderr."""


@contextmanager
def _collector() -> Iterator[tuple[str, threading.Event]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    server.arrived = threading.Event()  # type: ignore[attr-defined]  # for its handler
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.arrived  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def serve_and_read(folder: Path, told: Told) -> None:
    """One server that works, one that is misconfigured, one call by the command line."""
    folder.mkdir()
    command, *arguments = scripted()
    with _collector() as (endpoint, exported):
        config = folder / "observant-host.toml"
        config.write_text(
            f'version = 1\n[host]\nstate_dir = "state"\n[service]\nlisten = "127.0.0.1:0"\n'
            f'[telemetry]\notlp_endpoint = "{endpoint}"\n'
            f"[servers.served]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
            f'[servers.unset]\ncommand = "x"\nenv = {{ A = "${{NO_SUCH_VARIABLE}}" }}\n'
        )
        program = [sys.executable, "-m", "observant_host"]
        with subprocess.Popen(
            [*program, "run", "-c", str(config)], stderr=subprocess.PIPE, text=True
        ) as host:
            try:
                address = _address(host)
                called = subprocess.run(
                    [*program, "call", "-c", str(config), "echo", "--args", '{"text":"x"}'],
                    capture_output=True,
                    timeout=30,
                    check=False,
                )
                assert called.returncode == 0, called.stderr
                assert exported.wait(30)
                _knock(address)
                _ask(address)
                with urllib.request.urlopen(f"{address}/metrics", timeout=30) as answer:
                    told.read_metrics(answer.read().decode())
            finally:
                host.terminate()
                host.communicate(timeout=30)
    told.read_record(folder / "state")


def _knock(address: str) -> None:
    """As a page from elsewhere, which is not let in."""
    page = urllib.request.Request(f"{address}/readyz", headers={"Origin": "https://evil.example"})
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(page, timeout=30)


def _ask(address: str) -> None:
    """As an agent: for a prompt that no server has."""
    meta = {f"{KEY}protocolVersion": MODERN, f"{KEY}clientCapabilities": {}}
    params = {"name": "missing", "_meta": meta}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params}
    said = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "prompts/get",
        "Mcp-Name": "missing",
    }
    agent = urllib.request.Request(f"{address}/mcp", json.dumps(asked).encode(), said)
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(agent, timeout=30)


def _address(host: subprocess.Popen[str]) -> str:
    assert host.stderr is not None
    address = ""
    for line in host.stderr:
        event = json.loads(line)
        if event.get("what") == "listening":
            address = event["detail"].split()[1].rstrip(",")
        if event.get("what") == "published":
            return address
    raise AssertionError("the host ended before it was published")
