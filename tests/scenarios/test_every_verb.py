"""Every verb of an operator, once over the API and once by the command line, on a real host: each
is a decision with who and why, and a restart of the host keeps what its row says."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from observant_host.service.private_socket import socket_path
from tests.scenarios.verbs import CASES, Case, table
from tests.support.commands import command
from tests.support.running import config_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(180)

PATIENCE_S = 60.0
BY_API = {"X-Observant-Host-Principal": "api:ann"}


class Host:
    """A process of `observant-host run` with the servers `s` and `t`."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.config = folder / "observant-host.toml"
        servers = {"s": {"tools": "echo,mute"}, "t": {"tools": "echo"}}
        self.config.write_text(config_of(folder, servers))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Until it has published; ended by SIGTERM."""
        command = [sys.executable, "-m", "observant_host", "run", "-c", str(self.config)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if '"what":"published"' in line.replace(" ", ""):
                    break
            yield
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        return asyncio.run(self._api(method, path, body))

    async def _api(self, method: str, path: str, body: Any) -> Any:
        connector = aiohttp.UnixConnector(str(socket_path(self.state)))
        async with (
            aiohttp.ClientSession(connector=connector, headers=BY_API) as http,
            http.request(method, f"http://host/api/v1{path}", json=body) as answer,
        ):
            document = await answer.json()
            assert answer.status == 200, (method, path, document)
            return document

    def command(self, *argv: str) -> str:
        """What it says; it must succeed."""
        env = {**os.environ, "NO_COLOR": "1"}
        done = command(*argv, "-c", str(self.config), cwd=self.config.parent, env=env)
        assert done.returncode == 0, (argv, done)
        return done.stdout

    def begun(self, *argv: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "observant_host", *argv, "-c", str(self.config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )

    def open_call(self) -> tuple[subprocess.Popen[str], str]:
        """A call that hangs, and its id."""
        process = self.begun("call", "s/mute", "--json")
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            for call in self.api("GET", "/calls")["in_flight"]:
                if call["state"] == "sent":
                    return process, call["id"]
        raise AssertionError("no call was sent")

    def acts(self) -> list[dict[str, Any]]:
        """The decisions of operators, oldest first."""
        recent = self.api("GET", "/decisions")["recent"]
        return [
            {
                "server": one["server"] or "",
                **{key.rpartition(".")[2]: value for key, value in one["attributes"].items()},
            }
            for one in recent
            if one["name"] == "observant_host.operator"
        ]


def do(host: Host, case: Case, way: str) -> None:
    """Once, with a reason that names the way; what it needs is there, and put back afterwards."""
    call, call_id = host.open_call() if "{id}" in case.path else (None, "")
    reason = f"by {way}"
    if way == "api":
        path = case.path.format(id=call_id)
        query = f"?reason={reason.replace(' ', '+')}" if case.body is None else ""
        body = None if case.body is None else {**case.body, "reason": reason}
        host.api(case.method, path + query, body)
    else:
        argv = [part.format(id=call_id) for part in case.argv]
        host.command(*argv, "--reason", reason)
    if call is not None:
        out, _ = call.communicate(timeout=PATIENCE_S)
        assert (json.loads(out)["outcome"], call.returncode) == ("cancelled", 130)


def test_every_verb_by_both_ways_is_a_decision_with_who_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Host(tmp_path)
    rows = [("verb", "way", "server", "principal", "reason", "a restart keeps")]
    with host.running():
        for case in CASES:
            for way in ("api", "cli"):
                do(host, case, way)
                act = [one for one in host.acts() if one.get("reason") == f"by {way}"][-1]
                who = "api:ann" if way == "api" else "cli:"
                assert (act["verb"], act["server"]) == (case.recorded, case.about(way))
                assert act["principal"].startswith(who)
                rows.append(
                    (case.verb, way, act["server"], act["principal"], act["reason"], case.kept)
                )
                if case.undo is not None:
                    host.api("POST", f"/servers/s/{case.undo}", {})
    with capsys.disabled():
        print("\n" + table(rows))


def test_a_restart_keeps_what_stands_and_nothing_else(tmp_path: Path) -> None:
    host = Host(tmp_path)
    with host.running():
        host.command("disable", "s/mute", "--for", "1h", "--reason", "it hangs")
        host.command("hold", "s", "--for", "1h", "--reason", "a look")
        host.command("disable", "t", "--reason", "moved")
        host.command("allow", "s", "--reason", "it is old")
        host.command("log-level", "debug", "--for", "1h")
        file = host.command("capture", "s", "--for", "1h").strip()
        host.command("call", "s/echo", "--args", '{"text": "private"}')
    lines = [json.loads(line) for line in Path(file).read_text().splitlines()]
    assert lines[-1]["end"] == "the host ended"
    assert "private" not in json.dumps(lines)
    with host.running():
        servers = {one["name"]: one for one in host.api("GET", "/servers")["servers"]}
        assert servers["s"]["ruling"]["act"] == "hold"
        assert servers["s"]["allow_legacy"]
        assert servers["t"]["state"] == "disabled"
        assert servers["t"]["ruling"]["reason"] == "moved"
        tools = host.api("GET", "/tools")
        assert [one["local_name"] for one in tools["tools"]] == ["echo"]
        excluded = {one["local_name"]: one for one in tools["excluded"]}
        assert excluded["mute"]["reason"] == "denied"
        assert "it hangs" in excluded["mute"]["detail"]
        assert not any('"debug"' in line for line in host.api("GET", "/log")["lines"])
        begun = host.api("POST", "/servers/s/capture", {"for_s": 60})
        assert begun["file"] != file
        host.command("enable", "t")
        host.command("enable", "s/mute")
    with host.running():
        servers = {one["name"]: one for one in host.api("GET", "/servers")["servers"]}
        assert (servers["t"]["state"], servers["t"]["ruling"]) == ("ready", None)
        assert not host.api("GET", "/tools")["excluded"]
