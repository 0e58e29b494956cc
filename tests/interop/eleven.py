"""Eleven servers as a person would have them in a client's file: seven that nobody here wrote, and
four written here on other people's libraries. What era each has, and one call to each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from tests.interop import provisions

SERVERS = Path(__file__).parent / "servers"
NPM = "2026.8.31"
LEGACY = "2025-11-25"
MODERN = "2026-07-28"


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """One server: its entry in the file, the version it must come to, a call and its answer."""

    entry: dict[str, Any]
    version: str
    tool: str
    arguments: dict[str, Any]
    answer: str
    """A part of the answer's JSON text."""


def eleven(folder: Path, *, web: str, mark: str) -> dict[str, Foreign]:
    """All of them, working in `folder`. `web` is a page for `fetch`; `mark` goes into their
    environments, by which what they leave behind can be found."""
    repository, files = _repository(folder / "repository"), folder / "files"
    files.mkdir(exist_ok=True)
    (files / "seen.txt").write_text("seen\n")
    found = {
        "time": _uvx(
            "mcp-server-time@2026.10.19",
            "--local-timezone=UTC",
            call=("get_current_time", {"timezone": "UTC"}, "UTC"),
        ),
        "git": _uvx(
            "mcp-server-git@2026.10.19",
            "--repository",
            str(repository),
            call=("git_status", {"repo_path": str(repository)}, "nothing to commit"),
        ),
        "fetch": _uvx(
            "mcp-server-fetch@2026.10.24",
            "--ignore-robots-txt",
            "--allow-private-ips",
            call=("fetch", {"url": web, "raw": True}, "a page of nobody"),
        ),
        "everything": _npx("everything", call=("echo", {"message": "heard"}, "heard")),
        "filesystem": _npx(
            "filesystem", str(files), call=("list_directory", {"path": str(files)}, "seen.txt")
        ),
        "memory": _npx(
            "memory",
            call=("read_graph", {}, "entities"),
            MEMORY_FILE_PATH=str(folder / "memory.jsonl"),
        ),
        "sequential-thinking": _npx(
            "sequential-thinking",
            call=(
                "sequentialthinking",
                {
                    "thought": "t",
                    "nextThoughtNeeded": False,
                    "thoughtNumber": 1,
                    "totalThoughts": 1,
                },
                "thoughtNumber",
            ),
        ),
        "python-sdk-2": _python("python_sdk_2", MODERN, ("add", {"a": 2, "b": 3}, "5")),
        "python-sdk-1": _python("python_sdk_1", LEGACY, ("subtract", {"a": 2, "b": 3}, "-1")),
        "fastmcp-4": _python("fastmcp_4", MODERN, ("multiply", {"a": 2, "b": 3}, "6")),
        "typescript-sdk-2": _typescript(),
    }
    for one in found.values():
        one.entry.setdefault("env", {})["INTEROP_MARK"] = mark
    return found


def write_file(folder: Path, servers: dict[str, Foreign]) -> Path:
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {name: s.entry for name, s in servers.items()}}))
    return path


Call = tuple[str, dict[str, Any], str]


def _uvx(*argv: str, call: Call) -> Foreign:
    env = {"UV_EXCLUDE_NEWER": provisions.RELEASED_BEFORE}
    return _foreign({"command": "uvx", "args": list(argv), "env": env}, MODERN, call)


def _npx(name: str, *argv: str, call: Call, **env: str) -> Foreign:
    package = f"@modelcontextprotocol/server-{name}@{NPM}"
    pinned = {"npm_config_before": provisions.RELEASED_BEFORE, **env}
    entry = {"command": "npx", "args": ["-y", package, *argv], "env": pinned}
    return _foreign(entry, LEGACY, call)


def _python(name: str, version: str, call: Call) -> Foreign:
    python = str(provisions.python_with(name))
    return _foreign({"command": python, "args": [str(SERVERS / f"{name}.py")]}, version, call)


def _typescript() -> Foreign:
    folder = provisions.node_folder(SERVERS / "typescript_sdk_2")
    entry = {"command": "node", "args": [str(folder / "server.mjs")]}
    return _foreign(entry, MODERN, ("divide", {"a": 3, "b": 2}, "1.5"))


def _foreign(entry: dict[str, Any], version: str, call: Call) -> Foreign:
    tool, arguments, answer = call
    return Foreign(entry=entry, version=version, tool=tool, arguments=arguments, answer=answer)


def _repository(folder: Path) -> Path:
    who = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org")
    for argv in (
        ("init", "-q", str(folder)),
        ("-C", str(folder), *who, "commit", "-q", "--allow-empty", "-m", "Begin"),
    ):
        subprocess.run(["git", *argv], check=True, timeout=30, capture_output=True)
    return folder
