"""Clients that nobody here wrote, each in its own environment, use one running host: a modern and a
legacy server behind it, every feature that the client has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.interop import provisions
from tests.interop.clients.told import FEATURES
from tests.interop.conformance_driver import node
from tests.interop.eleven import LEGACY, MODERN, SERVERS
from tests.interop.endpoint import configuration, endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

CLIENTS = provisions.HERE / "clients"
CLIENT_LIMIT_S = 240


def python(environment: str, script: str, *argv: str, without: str = "") -> dict[str, str]:
    """What a script told that ran with the packages of a lock."""
    interpreter = str(provisions.python_with(environment))
    return told(interpreter, str(CLIENTS / script), *argv, without=without)


def told(*argv: str, cwd: Path | None = None, without: str = "") -> dict[str, str]:
    found: dict[str, str] = json.loads(ran(*argv, cwd=cwd, without=without).stdout.splitlines()[-1])
    return found


def ran(*argv: str, cwd: Path | None = None, without: str = "") -> subprocess.CompletedProcess[str]:
    """A client's process that ended well; what it keeps, it keeps in the cache folder. It does not
    try the features that are `without`."""
    home = {"HOME": str(provisions.cache_folder() / "home"), "LEFT_OUT": without}
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=CLIENT_LIMIT_S,
        cwd=cwd,
        env={**os.environ, **provisions.launcher_environment(), **home},
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def sdk_2(mode: str) -> Callable[[str], dict[str, str]]:
    return lambda url: python("python_sdk_2", "python_sdk_2.py", mode, url)


def fastmcp(mode: str) -> Callable[[str], dict[str, str]]:
    return lambda url: python("fastmcp_4", "fastmcp_4.py", mode, url)


def typescript(mode: str) -> Callable[[str], dict[str, str]]:
    def run(url: str) -> dict[str, str]:
        folder = provisions.node_folder(provisions.HERE / "eras/typescript_client")
        return told("node", str(CLIENTS / "typescript_2.mjs"), mode, url, cwd=folder)

    return run


def openai_agents(environment: str, without: str) -> Callable[[str], dict[str, str]]:
    return lambda url: python(environment, "openai_agents.py", url, without=without)


def mcp_remote(protocol: str, without: str = "") -> Callable[[str], dict[str, str]]:
    """The bridge for clients that only start processes, in front of the SDK's client. That one
    speaks 2025-11-25 with it; `auto` has the bridge speak 2026-07-28 with the host."""

    def run(url: str) -> dict[str, str]:
        folder = provisions.node_folder(CLIENTS / "mcp_remote")
        bridge = folder / "node_modules/mcp-remote/dist/proxy.js"
        words = ("--transport", "http-only", "--allow-http", "--protocol", protocol)
        argv = ("legacy", "node", str(bridge), url, *words)
        return python("python_sdk_2", "python_sdk_2.py", *argv, without=without)

    return run


INSPECTED = {
    "list": (("tools/list",), '"add"'),
    "call": (("tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3"), '"5"'),
    "prompt": (
        ("prompts/get", "--prompt-name", "welcome", "--prompt-args", "name=Ada"),
        "Welcome Ada.",
    ),
    "resource": (("resources/read", "--uri", "memo://hello"), "a memo for all"),
}
"""What the Inspector's command line is asked, and a part of its answer."""


def inspector(url: str) -> dict[str, str]:
    """One process for each request. It does not tell which revision it came to. (Its lock is
    without an optional package for Windows that is not in every mirror.)"""
    folder = provisions.node_folder(CLIENTS / "inspector")
    script = folder / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    row = {"version": ""}
    for feature, (words, part) in INSPECTED.items():
        done = ran(
            *(str(node()), str(script), "--cli", url, "--transport", "http", "--method", *words)
        )
        row[feature] = "ok" if part in done.stdout else done.stdout + done.stderr
    return row


ALL = frozenset(FEATURES)
RUNS: dict[str, tuple[Callable[[str], dict[str, str]], str]] = {
    "Python SDK 2, auto": (sdk_2("auto"), MODERN),
    "Python SDK 2, modern": (sdk_2(MODERN), MODERN),
    "Python SDK 2, legacy": (sdk_2("legacy"), LEGACY),
    "Python SDK 1": (lambda url: python("python_sdk_1", "python_sdk_1.py", url), LEGACY),
    "TypeScript client 2, auto": (typescript("auto"), MODERN),
    "TypeScript client 2, legacy": (typescript("legacy"), LEGACY),
    "fastmcp 4, auto": (fastmcp("auto"), MODERN),
    "fastmcp 4, legacy": (fastmcp("legacy"), LEGACY),
    "MCP Inspector 2, --cli": (inspector, ""),
    "mcp-remote, legacy": (mcp_remote("legacy"), LEGACY),
    "mcp-remote, auto": (mcp_remote("auto", "cancel"), LEGACY),
    "openai-agents": (openai_agents("openai_agents", "list change"), MODERN),
    "openai-agents on SDK 1": (openai_agents("openai_agents_mcp_1", "cancel"), LEGACY),
    "langchain-mcp-adapters": (
        lambda url: python("langchain_adapters", "langchain_adapters.py", url),
        LEGACY,
    ),
}
"""How each is run, and the revision it comes to speak."""

ONE_REQUEST = "each command is a process for one request, which waits for its answer"
CANNOT: dict[str, dict[str, str]] = {
    "MCP Inspector 2, --cli": dict.fromkeys(ALL - INSPECTED.keys(), ONE_REQUEST),
    "mcp-remote, auto": {
        "cancel": "it posts notifications/cancelled, which 2026-07-28 has on stdio only, and keeps "
        "the stream of the response open, whose end would say it"
    },
    "openai-agents": {
        "progress": "its call_tool takes nothing to be told by",
        "list change": "it opens no subscriptions/listen, and 2026-07-28 tells on no other stream",
    },
    "openai-agents on SDK 1": {
        "progress": "its call_tool takes nothing to be told by",
        "cancel": "SDK 1 below it tells nobody that a call was given up",
    },
    "langchain-mcp-adapters": {"list change": "it has a session for each call, and none between"},
}
"""What a client has no way to use, and why."""


def behind() -> dict[str, dict[str, object]]:
    """A server of each era, started by the host."""
    return {
        "featured": {
            "command": str(provisions.python_with("python_sdk_2")),
            "args": [str(SERVERS / "featured.py")],
        },
        "older": {
            "command": str(provisions.python_with("python_sdk_1")),
            "args": [str(SERVERS / "python_sdk_1.py")],
            "allow_legacy": [LEGACY],
        },
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the running host has its configuration and state."""
    return tmp_path_factory.mktemp("host")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with endpoint(folder, behind()) as found:
        yield found


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, dict[str, str]]]:
    """What each client told; the table is printed for whoever reads the log."""
    found: dict[str, dict[str, str]] = {}
    yield found
    print(f"\n{'client':<30}{'speaks':<12}" + "".join(f"{name:<12}" for name in FEATURES))
    for client, features in found.items():
        shown = "".join(f"{features.get(name, '-')[:11]:<12}" for name in FEATURES)
        print(f"{client:<30}{features.get('version', ''):<12}{shown}")
        for feature, why in CANNOT.get(client, {}).items():
            print(f"  {feature}: {why}")


@pytest.mark.parametrize("client", RUNS)
def test_a_client_uses_all_it_can(url: str, rows: dict[str, dict[str, str]], client: str) -> None:
    run, version = RUNS[client]
    rows[client] = run(url)
    can = ALL - CANNOT.get(client, {}).keys()
    assert rows[client] == {"version": version, **dict.fromkeys(can, "ok")}


def stdio(folder: Path) -> tuple[str, ...]:
    """What a desktop client starts."""
    config = folder / "observant-host.toml"
    return (sys.executable, "-m", "observant_host", "stdio", "--config", str(config))


def test_a_desktop_client_starts_its_own_host(
    tmp_path: Path, rows: dict[str, dict[str, str]]
) -> None:
    configuration(tmp_path, behind())
    row = python("python_sdk_2", "python_sdk_2.py", "auto", *stdio(tmp_path))
    rows["stdio, alone"] = row
    assert row == {"version": MODERN, **dict.fromkeys(ALL, "ok")}


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize(("mode", "version"), [("auto", MODERN), ("legacy", LEGACY)])
def test_a_desktop_client_joins_the_host_that_runs(
    folder: Path, rows: dict[str, dict[str, str]], mode: str, version: str
) -> None:
    row = python("python_sdk_2", "python_sdk_2.py", mode, *stdio(folder))
    rows[f"stdio, joining, {mode}"] = row
    assert row == {"version": version, **dict.fromkeys(ALL, "ok")}
