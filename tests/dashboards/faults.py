"""A host in a process of its own whose servers have every fault there is, under steady calls."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from observant_host.errors import HostError
from observant_host.service.client import HostClient
from tests.dashboards.asking import asking
from tests.dashboards.prometheus import free_port, until
from tests.support.peers import program, scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FITS_NOT = {
    "name": "structured",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"value": {"type": "integer"}}},
}
TWO_LIVES = """
if [ -e "$0" ]; then exec {second}; fi
touch "$0"
exec {first}
"""

HEAD = """\
version = 1
[host]
state_dir = {state}
startup_deadline_s = 2
remember_modern = false     # so that a server that was rolled back is a downgrade, not a refusal
[service]
listen = "127.0.0.1:{port}"
[telemetry]
otlp_endpoint = {collector}
[defaults]
probe_timeout_s = 1
call_timeout_s = 3
restart_initial_s = 0.2
restart_max_s = 1
reprobe_max_s = 1
ack_timeout_s = 1
"""


class Running:
    """`url` is where it can be scraped."""

    def __init__(self, folder: Path, port: int) -> None:
        self.state_dir = folder / "state"
        self.address = f"127.0.0.1:{port}"

    def ready(self) -> bool | None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://{self.address}/readyz", timeout=2).close()
            return True
        return None


def _table(name: str, argv: tuple[str, ...], **keys: object) -> str:
    command, *arguments = argv
    given = {"command": command, "args": arguments, **keys}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    return "\n".join((f"[servers.{name}]", *lines, ""))


def _shell(words: tuple[str, ...]) -> str:
    return " ".join(f"'{word}'" for word in words)


def servers(folder: Path, *, forgetful: int, locked: int) -> str:
    """Their tables. `forgetful` and `locked` are the ports of the two behind URLs."""
    allowed = {"allow_legacy": True, "legacy_reason": "a test", "legacy_expires": "2099-12-31"}
    modern = {"era": "modern", "max_life": 600}
    rolled_back = TWO_LIVES.format(
        first=_shell(scripted(die_after=10, tools="pay", **modern)),  # long enough to be scraped
        second=_shell(scripted(era="legacy", tools="pay", max_life=600)),
    )
    tables = [
        _table(
            "works",
            scripted(
                tools="echo,slow,fail,mute,rpc_error,noise,log,die",
                tool_json=[json.dumps(FITS_NOT)],
                resources="file:///notes",
                ttl=60_000,
                **modern,
            ),
            required=True,
            max_in_flight=2,
        ),
        _table("twin", scripted(tools="echo,stall", **modern)),
        _table("crashes", scripted(exit_at_start=3)),
        _table("dies", scripted(die_after=1, tools="once", **modern)),
        _table("old", scripted(era="legacy", tools="old", max_life=600)),
        _table("old_allowed", scripted(era="legacy", tools="older", max_life=600), **allowed),
        _table("warms_up", scripted(start_delay=4, tools="late", **modern)),
        _table("rolled_back", ("sh", "-c", rolled_back, str(folder / "rolled-back")), **allowed),
        _table("rolled_back_too", ("sh", "-c", rolled_back, str(folder / "rolled-back-too"))),
        _table("deaf", scripted(tools="heard", listen="cancelled:1", **modern)),
        _table("listless", scripted(tools="x", list="error:-32603", **modern)),
        '[servers.misconfigured]\ncommand = "true"\nenv = { TOKEN = "${NOBODY_SET_THIS}" }\n',
        f'[servers.forgetful]\nurl = "http://127.0.0.1:{forgetful}/mcp"\nallow_legacy = true\n',
        f'[servers.locked]\nurl = "http://127.0.0.1:{locked}/mcp"\n',
        f'[servers.gone]\nurl = "http://127.0.0.1:{free_port()}/mcp"\n',
    ]
    return "".join(tables).replace('"2099-12-31"', "2099-12-31")  # a date, not a string


CALLS = [
    ("works/echo", {"text": "x"}, 3.0),
    ("works/slow", {"s": 0.4}, 3.0),
    ("works/slow", {"s": 0.4}, 3.0),
    ("works/slow", {"s": 0.4}, 3.0),
    ("works/slow", {"s": 0.4}, 3.0),
    ("works/fail", {}, 3.0),
    ("works/mute", {}, 0.3),
    ("works/rpc_error", {}, 3.0),
    ("works/noise", {}, 3.0),
    ("works/log", {"level": "info"}, 3.0),
    ("works/structured", {"value": "no integer"}, 3.0),
    ("twin/echo", {"text": "x"}, 3.0),
    ("old_allowed/older", {}, 3.0),
    ("rolled_back/pay", {}, 3.0),
    ("forgetful/kept", {}, 3.0),
    ("forgetful/kept", {}, 3.0),
    ("crashes/nothing", {}, 3.0),
    ("nobody", {}, 3.0),
]
RARE_CALLS = [("works/die", {}, 3.0)]
"""Every tenth round: the server begins another life."""


async def _round(client: HostClient, number: int) -> None:
    calls = [*CALLS, *(RARE_CALLS if number % 10 == 5 else ())]

    async def call(name: str, arguments: dict[str, object], deadline_s: float) -> None:
        with contextlib.suppress(HostError):
            await client.call(name, json.dumps(arguments).encode(), deadline_s=deadline_s)

    async def read() -> None:
        with contextlib.suppress(HostError):
            await client.resource("file:///notes", server="works", deadline_s=3.0)

    await asyncio.gather(*(call(*one) for one in calls), read())


async def _calls(state_dir: Path, stop: threading.Event) -> None:
    number = 0
    async with HostClient(state_dir) as client:
        while not stop.is_set():
            await _round(client, number)
            number += 1
            await asyncio.sleep(0.3)


async def _all(running: Running, stop: threading.Event) -> None:
    await asyncio.gather(_calls(running.state_dir, stop), asking(running.address, stop))


class _Collector(http.server.BaseHTTPRequestHandler):
    """Takes every export."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not on the tests' stderr."""


@contextmanager
def collector() -> Iterator[str]:
    """The URL of one that takes every export."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def _behind_url(**options: object) -> Iterator[int]:
    argv: list[str] = []
    for name, value in options.items():
        argv += [f"--{name.replace('_', '-')}", str(value)]
    process = subprocess.Popen(program("http_scripted.py", *argv), stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def faulty_host(folder: Path) -> Iterator[Running]:
    """Started, and called all the time, until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    running = Running(folder, port)
    config = folder / "observant-host.toml"
    with contextlib.ExitStack() as stack:
        endpoint = stack.enter_context(collector())
        forgetful = stack.enter_context(
            _behind_url(era="legacy", tools="kept", session_requests=4, max_life=600)
        )
        locked = stack.enter_context(_behind_url(era="modern", token="secret", max_life=600))
        head = HEAD.format(
            state=json.dumps(str(running.state_dir)), port=port, collector=json.dumps(endpoint)
        )
        config.write_text(head + servers(folder, forgetful=forgetful, locked=locked))
        log = stack.enter_context((folder / "host.log").open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", "observant_host", "run", "-c", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        stack.callback(_end, process)

        def ready() -> bool | None:
            assert process.poll() is None, (folder / "host.log").read_text()[-3000:]
            return running.ready()

        until("the host is ready", ready)
        stop = threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(_all(running, stop)))
        thread.start()
        stack.callback(thread.join)
        stack.callback(stop.set)
        yield running


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    finally:
        process.kill()
