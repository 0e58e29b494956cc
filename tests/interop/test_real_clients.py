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


def python(environment: str, script: str, *argv: str) -> dict[str, str]:
    """What a script told that ran with the packages of a lock."""
    return told(str(provisions.python_with(environment)), str(CLIENTS / script), *argv)


def told(*argv: str, cwd: Path | None = None) -> dict[str, str]:
    found: dict[str, str] = json.loads(ran(*argv, cwd=cwd).stdout.splitlines()[-1])
    return found


def ran(*argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A client's process that ended well; what it keeps, it keeps in the cache folder."""
    home = {"HOME": str(provisions.cache_folder() / "home")}
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


def mcp_remote(url: str) -> dict[str, str]:
    """The bridge for clients that only start processes, in front of the SDK's client."""
    folder = provisions.node_folder(CLIENTS / "mcp_remote")
    bridge = folder / "node_modules/mcp-remote/dist/proxy.js"
    argv = ("node", str(bridge), url, "--transport", "http-only", "--allow-http")
    return python("python_sdk_2", "python_sdk_2.py", "legacy", *argv)


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
RUNS: dict[str, tuple[Callable[[str], dict[str, str]], str, frozenset[str]]] = {
    "Python SDK 2, auto": (sdk_2("auto"), MODERN, ALL),
    "Python SDK 2, modern": (sdk_2(MODERN), MODERN, ALL),
    "Python SDK 2, legacy": (sdk_2("legacy"), LEGACY, ALL),
    "Python SDK 1": (lambda url: python("python_sdk_1", "python_sdk_1.py", url), LEGACY, ALL),
    "TypeScript client 2, auto": (typescript("auto"), MODERN, ALL),
    "TypeScript client 2, legacy": (typescript("legacy"), LEGACY, ALL),
    "fastmcp 4, auto": (fastmcp("auto"), MODERN, ALL),
    "fastmcp 4, legacy": (fastmcp("legacy"), LEGACY, ALL),
    "MCP Inspector 2, --cli": (inspector, "", frozenset(INSPECTED)),
    "mcp-remote": (mcp_remote, LEGACY, ALL),
    "openai-agents": (
        lambda url: python("openai_agents", "openai_agents.py", url),
        MODERN,
        ALL - {"progress", "cancel", "list change"},
    ),
    "langchain-mcp-adapters": (
        lambda url: python("langchain_adapters", "langchain_adapters.py", url),
        LEGACY,
        ALL - {"cancel", "list change"},
    ),
}
"""How each is run, the revision it comes to speak, and what it has a way to use."""


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


@pytest.mark.parametrize("client", RUNS)
def test_a_client_uses_all_it_can(url: str, rows: dict[str, dict[str, str]], client: str) -> None:
    run, version, features = RUNS[client]
    rows[client] = run(url)
    assert rows[client] == {"version": version, **dict.fromkeys(features, "ok")}


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
