"""Somebody's client file with eleven servers, most written by nobody here, becomes a working host:
`init`, `run`, `status`, `tools`, one `call` to each, and an end that leaves nothing."""

from __future__ import annotations

import json
import signal
import time
import tomllib
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop import provisions
from tests.interop.command_line import COMMAND_LIMIT_S, Person, marked
from tests.interop.eleven import LEGACY, MODERN, Foreign, eleven, write_file

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

LEGACY_ONES = {
    "everything",
    "filesystem",
    "memory",
    "sequential-thinking",
    "python-sdk-1",
}


class Set(Person):
    """A person with the eleven in a client's file, which `init` has turned into a host's."""

    def __init__(self, folder: Path, page: str) -> None:
        self.mark = f"interop-{uuid.uuid4()}"
        super().__init__(folder, {**provisions.launcher_environment(), "INTEROP_MARK": self.mark})
        self.servers: dict[str, Foreign] = eleven(folder, web=page, mark=self.mark)
        self.theirs = write_file(folder, self.servers)
        self.before = self.theirs.read_bytes()
        self.config = folder / "observant-host.toml"
        self.found = self.asks("init", "--from", ".mcp.json", "--yes")
        self.left_by_init = marked(self.mark)


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory, page: str) -> Set:
    return Set(tmp_path_factory.mktemp("eleven"), page)


class Serving:
    def __init__(self, person: Set, process: subprocess.Popen[str]) -> None:
        self.person, self.process = person, process
        self.servers, self.asks = person.servers, person.asks

    def settled(self) -> dict[str, dict[str, Any]]:
        """Status of each once none is starting: a busy machine starts eleven in half a minute."""
        ends = time.monotonic() + COMMAND_LIMIT_S
        while True:
            servers = {one["name"]: one for one in self.asks("status")["servers"]}
            if all(one["state"] != "starting" for one in servers.values()):
                return servers
            assert time.monotonic() < ends, servers


@pytest.fixture(scope="module")
def serving(person: Set) -> Iterator[Serving]:
    with person.running(person.config) as process:
        one = Serving(person, process)
        one.settled()
        yield one


def test_init_finds_the_era_of_each_and_leaves_nothing_running(person: Set) -> None:
    eras = {one["name"]: one["version"] for one in person.found["servers"]}
    assert eras == {name: one.version for name, one in person.servers.items()}
    assert person.left_by_init == []
    assert person.theirs.read_bytes() == person.before


def test_init_writes_an_allowance_for_each_old_server_and_no_other(person: Set) -> None:
    written = tomllib.loads(person.config.read_text())
    assert written["host"]["import"] == [".mcp.json"]
    assert set(written["servers"]) == LEGACY_ONES
    for table in written["servers"].values():
        assert table["allow_legacy"] == [LEGACY]
        assert table["legacy_fingerprint"].startswith("sha256:")
        assert table["legacy_reason"]
        assert table["legacy_expires"]


def test_all_are_ready_in_the_era_they_speak(serving: Serving) -> None:
    servers = serving.settled()
    told = {name: (one["state"], one["version"], one["reason"]) for name, one in servers.items()}
    by_version = {MODERN: "discover_ok", LEGACY: "initialize_ok"}
    assert told == {
        name: ("ready", one.version, by_version[one.version])
        for name, one in serving.servers.items()
    }
    assert all(one["tools"] for one in servers.values())
    assert all(one["layers"]["listing"] == "ok" for one in servers.values())


def test_all_their_tools_are_in_one_catalogue(serving: Serving) -> None:
    told = serving.asks("tools")
    assert {tool["server"] for tool in told["tools"]} == set(serving.servers)
    assert all(tool["routable"] for tool in told["tools"])
    assert len({tool["name"] for tool in told["tools"]}) == len(told["tools"])
    assert told["missing"] == []
    assert told["excluded"] == []


@pytest.mark.parametrize(
    "name",
    [*sorted(LEGACY_ONES), "time", "git", "fetch", "python-sdk-2", "fastmcp-4", "typescript-sdk-2"],
)
def test_a_call_reaches_it_and_its_answer_comes_back(serving: Serving, name: str) -> None:
    one = serving.servers[name]
    told = serving.person.calls(f"{name}/{one.tool}", one.arguments)
    assert (told["server"], told["outcome"], told["delivery"]) == (name, "ok", "replied")
    assert told["era"] == ("modern" if one.version == MODERN else "legacy")
    assert one.answer in json.dumps(told["result"])


def test_sigterm_ends_all_of_it(serving: Serving) -> None:
    mark, host = serving.person.mark, serving.process
    assert len(marked(mark)) > len(serving.servers)
    host.send_signal(signal.SIGTERM)
    assert host.wait(30) == 0
    assert marked(mark) == []
