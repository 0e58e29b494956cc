"""Secrets are planted wherever a configuration can hold one, and every output there is is read.

The servers repeat all that they were given on stdout, stderr, in errors, names and notifications:
the worst that an honest server does by mistake. Only the results of calls pass as they were sent.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import traceback
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import Host, StdioServer, errors
from tests.support import canary
from tests.support.commands import command
from tests.support.hosts import QUICK
from tests.support.peers import program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "cnry-token-file-content"
TOOLS = ("rpc_error", "fail", "odd", "noise", "die", "ok", "ask", "broken", "nope")
SERVERS = ("env", "arguments", "web", "imported")
COMMANDS = {
    "serve": (
        *(("config", "show"), ("config", "show", "--origin"), ("config", "check"), ("doctor",)),
        *(("status",), ("probe",), ("tools",), ("prompts",), ("resources",), ("explain", "env")),
        *(("call", "env/rpc_error"), ("call", "env/odd"), ("call", "env/ask"), ("call", "env/die")),
    ),
    "refuse": (
        *(("status",), ("probe", "--suggest-legacy"), ("explain", "env"), ("call", "env/ok")),
        ("allow", "arguments", "--reason", "seen"),
    ),
}
IN_JSON = ("config", "doctor", "probe", "tools", "explain", "allow")
"""Whose documents are not the same as the API's, or not only."""
ALONE = (("status", "--json"), ("probe",), ("tools",), ("call", "env/rpc_error"))


class Planted:
    """The planted configuration, what runs by it, and all that was said."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.folder = folder
        self.config = canary.plant(folder, command=[*program("leaky.py", mode)])
        (folder / canary.SECRETS["token file"]).write_text(TOKEN)
        self.environment = canary.environment(
            folder, OBSERVANT_HOST_SERVICE__LISTEN="127.0.0.1:0", OBSERVANT_HOST_LOG="debug"
        )
        self.log: list[str] = []

    def command(self, *words: str) -> str:
        """All that one command says, on both streams."""
        ran = command(*words, env=self.environment, cwd=self.folder)
        return f"{words} {ran.returncode}\n{ran.stdout}\n{ran.stderr}"

    def commands(self, *every: tuple[str, ...]) -> Iterator[str]:
        return (self.command(*words) for words in every)

    @contextmanager
    def running(self) -> Iterator[str]:
        """`run -vv`; gives its address. Its log is in `log` afterwards."""
        words = [sys.executable, "-m", "observant_host", "-vv", "run", "-c", str(self.config)]
        with subprocess.Popen(
            words, env=self.environment, cwd=self.folder, stderr=subprocess.PIPE, text=True
        ) as host:
            published = threading.Event()
            reader = threading.Thread(target=self._read, args=(host, published))
            reader.start()
            try:
                assert published.wait(30), "".join(self.log)
                yield next(
                    json.loads(line)["detail"].split()[1].rstrip(",")
                    for line in self.log
                    if '"listening"' in line
                )
            finally:
                host.terminate()
                host.wait(30)
                reader.join(10)

    def _read(self, host: subprocess.Popen[str], published: threading.Event) -> None:
        assert host.stderr is not None
        for line in host.stderr:
            self.log.append(line)
            if '"published"' in line:
                published.set()

    def ask(self, method: str, path: str, body: bytes = b"") -> str:
        """One request to the private socket, answered as text."""
        connection = http.client.HTTPConnection("host", timeout=30)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self.folder / "state" / "host.sock"))
        try:
            connection.request(method, path, body)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def files(self) -> Iterator[tuple[str, str]]:
        for path in sorted((self.folder / "state").rglob("*")):
            if path.is_file():
                yield str(path), path.read_text(errors="replace")


def _get(address: str) -> str:
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as refused:
        return str(refused.read().decode())


def _silent(*texts: str) -> None:
    for text in texts:
        assert not canary.found_in(text), f"{canary.found_in(text)} in {_around(text)}"
        assert TOKEN not in text


def _around(text: str) -> str:
    """What was said just before the first secret, and of what."""
    at = text.find("cnry-")
    return f"{text[:60]} … {text[max(0, at - 200) : max(0, at)]}"


@pytest.mark.timeout(170)
@pytest.mark.parametrize("mode", ["serve", "refuse"])
def test_no_output_of_a_running_host_shows_a_secret(tmp_path: Path, mode: str) -> None:
    planted = Planted(tmp_path, mode)
    file = ("-c", str(planted.config))
    with planted.running() as address:
        for line in planted.commands(
            *(("-v", *words, *file) for words in COMMANDS[mode]),
            *((*words, *file, "--json") for words in COMMANDS[mode] if words[0] in IN_JSON),
        ):
            _silent(line)
        for kind in ("servers", "servers/env", "tools", "prompts", "resources", "nothing"):
            _silent(_without_tools(planted.ask("GET", f"/api/v1/{kind}")))
        for server in SERVERS:
            _silent(planted.ask("GET", f"/api/v1/decisions?server={server}"))
            for verb in ("probe", "allow", "examine", "nothing"):
                _silent(planted.ask("POST", f"/api/v1/servers/{server}/{verb}"))
        for tool in TOOLS:
            body = json.dumps({"name": f"env/{tool}"}).encode()
            _silent(_without_result(planted.ask("POST", "/api/v1/tools/call", body)))
        metrics = _get(f"{address}/metrics")
        assert "observant_host_peer_state" in metrics
        _silent(metrics, _get(f"{address}/healthz"), _get(f"{address}/readyz"))
    log = "".join(planted.log)
    assert "operator_act" in log
    _silent(log)
    files = dict(planted.files())
    assert {"memory.json", "decisions", "traces"} <= {part for f in files for part in f.split("/")}
    for name, text in files.items():
        _silent(name + text)


@pytest.mark.timeout(120)
def test_no_command_that_starts_its_own_host_shows_a_secret(tmp_path: Path) -> None:
    planted = Planted(tmp_path, "serve")
    file = ("-c", str(planted.config), "--standalone")
    made = ("init", "--from", str(tmp_path / "client.json"), "--out", str(tmp_path / "new.toml"))
    broken = ("-c", str(canary.plant_broken(tmp_path)))
    said = list(
        planted.commands(
            ("-v", *made, "--yes"),
            *(("-vv", *words, *file) for words in ALONE),
            *(("-vv", word, *rest, *broken) for word, *rest in (("config", "check"), ("run",))),
        )
    )
    for line in said:
        _silent(line)
    assert (tmp_path / "new.toml").exists(), said[0]
    _silent((tmp_path / "new.toml").read_text())


def _without_tools(answer: str) -> str:
    """A server's tool objects are untouched, as results are; everything around them is ours."""
    document = json.loads(answer) if answer.startswith("{") else {"said": answer}
    listed = document.get("tools")
    for tool in listed if isinstance(listed, list) else []:
        tool.pop("tool")
    return json.dumps(document)


def _without_result(answer: str) -> str:
    document: dict[str, Any] = json.loads(answer)
    assert document.pop("result", None) is not None or document["error"] is not None
    return json.dumps(document)


@pytest.mark.parametrize("mode", ["serve", "refuse", "die"])
async def test_no_view_and_no_exception_of_the_library_shows_a_secret(mode: str) -> None:
    secret, other = canary.SECRETS["env literal"], canary.SECRETS["env variable"]
    host = Host(secrets=[other], startup_deadline_s=20)
    launch = StdioServer(program("leaky.py", mode, "--key", other), env={"KEY": secret})
    host.add_server("leaky", launch, allow_legacy=True, **{**QUICK, "restart_initial_s": 600})
    async with host:
        _silent(repr(host.servers), repr(await host.explain("leaky")))
        _silent(repr(await host.examine("leaky")), repr(host.catalogue.excluded))
        for tool in TOOLS:
            try:
                await host.call_tool(f"leaky/{tool}")
            except errors.CallError as error:
                _silent(str(error), repr(error), repr(vars(error)))
                _silent("".join(traceback.format_exception(error)))
        _silent(repr(host.servers), (await host.metrics())[0].decode())
