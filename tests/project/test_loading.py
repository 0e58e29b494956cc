"""What a plain user of the library loads: nothing that serves, exports or draws."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.peers import scripted

UNUSED = (
    "aiohttp",  # an HTTP client, and what serves
    "bm25s",
    "click",
    "cryptography",
    "google.protobuf",
    "importlib.metadata",
    "jinja2",
    "json5",
    "jsonschema_rs",  # judges what is not plain by its shape
    "jwt",
    "numpy",
    "observant_host.cli",
    "observant_host.incidents",
    "observant_host.service.app",
    "opentelemetry.exporter",
    "opentelemetry.sdk",
    "prometheus_client",  # renders a scrape
    "rich",
    "structlog",
)
IMPORT = "from observant_host import Host, HttpServer, StdioServer"
RUN = """
import asyncio

async def serve():
    host = Host(startup_deadline_s=30)
    host.add_server("one", StdioServer(COMMAND))
    async with host:
        assert (await host.call_tool("echo", {"text": "x"})).text == "x"

asyncio.run(serve())
"""
URL = 'Host().add_server("web", HttpServer("https://mcp.example.com/mcp"))'


def loaded_after(*lines: str) -> list[str]:
    """Which of the modules are there in a fresh interpreter."""
    names = json.dumps(UNUSED)
    tell = f"import sys, json; print(json.dumps([n for n in {names} if n in sys.modules]))"
    command = f"COMMAND = {list(scripted(tools='echo'))!r}"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join((command, *lines, tell))],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_importing_the_library_loads_nothing_heavy() -> None:
    assert loaded_after(IMPORT) == []


def test_running_a_host_of_stdio_servers_loads_only_what_counts() -> None:
    assert loaded_after(IMPORT, RUN) == []


def test_nothing_is_loaded_while_servers_start() -> None:
    before = "import sys; before = set(sys.modules)"
    after = "late = {n for n in set(sys.modules) - before if n.count('.') < 2}"
    assert loaded_after(IMPORT, before, RUN, after, "assert len(late) < 10, late") == []


def test_an_http_client_is_loaded_where_a_url_is_declared() -> None:
    assert "aiohttp" in loaded_after(IMPORT, URL)
