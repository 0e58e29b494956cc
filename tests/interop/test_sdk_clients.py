"""Official Python SDK clients that are asked during a call, over HTTP and joining a host."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop import provisions
from tests.support.running import config_of, file_in, running

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

CLIENTS = provisions.HERE / "clients"
KINDS = {
    "1.x": ("python_sdk_1", (), "2025-11-25"),
    "2.x legacy": ("python_sdk_2", ("legacy",), "2025-11-25"),
    "2.x auto": ("python_sdk_2", ("auto",), "2026-07-28"),
}
"""Client to (its lock, its first words, the revision that it speaks)."""
each_kind = pytest.mark.parametrize("kind", KINDS)
SERVER = {
    "tools": "echo,progress,ask,add_tool",
    "prompts": "greet",
    "resources": "x://r",
}
PATIENCE_S = 60


async def told_by(kind: str, *words: str) -> dict[str, Any]:
    """What the client printed."""
    lock, first, _ = KINDS[kind]
    python = await asyncio.to_thread(provisions.python_with, lock)
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(CLIENTS / f"{lock.replace('python', 'asked')}.py"),
        *first,
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-3000:]
    return json.loads(out)


def configured(tmp_path: Path) -> Path:
    path = file_in(tmp_path)
    path.write_text(config_of(tmp_path, {"files": SERVER}))
    return path


def is_served(kind: str, told: dict[str, Any]) -> None:
    assert told["version"] == KINDS[kind][2]
    assert "echo" in told["tools"]
    assert "more" in told["after"]
    assert "hi" in told["echoed"]
    assert len(told["progress"]) == 3
    assert told["prompt"]
    assert told["resource"]
    assert "ann" in told["elicited"]


@each_kind
async def test_over_http(tmp_path: Path, kind: str) -> None:
    configured(tmp_path)
    async with running(tmp_path) as host:
        at = await host.until("host_lifecycle", what="listening")
        (url,) = [one for one in at["detail"].replace(",", "").split() if one.startswith("http")]
        is_served(kind, await told_by(kind, f"{url}/mcp"))


def command(path: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "observant_host", "stdio", "-c", str(path))


async def test_over_stdio_joining_a_host(tmp_path: Path) -> None:
    kind = "2.x auto"
    path = configured(tmp_path)
    async with running(tmp_path) as host:
        before = (await host.servers())["files"]["pid"]
        is_served(kind, await told_by(kind, *command(path)))
        assert (await host.servers())["files"]["pid"] == before
