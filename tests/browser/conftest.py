"""A real Chromium in front of a real host. Screenshots go to $OBSERVANT_HOST_SHOTS, else nowhere
that is kept."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import Host
from tests.service.console.stage import configured, console_of
from tests.support.hosts import PATIENCE_S, QUICK, add

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

AXE = "axe-core@4.14.1"
SLOW_TO_RETURN: dict[str, Any] = {**QUICK, "restart_initial_s": 2.0, "restart_max_s": 2.0}
"""Long enough down to be seen, soon enough back to wait for."""
FORM = {
    "name": "describe",
    "description": "Describes a place.\nIn as many words as you like.",
    "inputSchema": {
        "type": "object",
        "required": ["place", "words"],
        "properties": {
            "place": {"type": "string", "title": "Place", "description": "Where it is."},
            "words": {"type": "integer", "minimum": 1},
            "tone": {"enum": ["plain", "warm", "formal"], "default": "plain"},
            "rhyme": {"type": "boolean"},
            "seen": {"type": "array", "items": {"type": "string"}},
        },
    },
}


class Stage:
    """`goto` opens a page of the console; `errors` are what the browser complained about."""

    def __init__(self, host: Host, base: str, page: Any) -> None:
        from playwright.async_api import expect

        self.host, self.base, self.page = host, base, page
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE_S * 1000)
        expect.set_options(timeout=PATIENCE_S * 1000)  # what is promised "at once" says so itself
        page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    async def goto(self, path: str) -> None:
        await self.page.goto(self.base + path)

    async def followed(self, path: str) -> None:
        """Open it, and wait until it follows what changes."""
        async with self.page.expect_response("**/console/events"):
            await self.goto(path)

    async def wider(self) -> int:
        """Pixels by which the page is wider than the window."""
        wider: int = await self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return wider


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host = Host(config=configured(), startup_deadline_s=PATIENCE_S)
    weather = {"tools": "echo,add,fail,slow,pid", "tool_json": json.dumps(FORM), "prompts": "greet"}
    add(host, "weather", weather, **SLOW_TO_RETURN)
    add(host, "notes", {"tools": "echo,search", "resources": "file:///notes"}, **SLOW_TO_RETURN)
    add(host, "archive", {"era": "legacy", "tools": "find"}, **SLOW_TO_RETURN)
    broken = {"exit_at_start": "3", "stderr": "fatal: cannot open <database>"}
    add(host, "ledger", broken, **{**SLOW_TO_RETURN, "reprobe_max_s": 300})
    async with host:
        yield host


@pytest.fixture
async def stages(host: Host) -> AsyncIterator[Any]:
    """`await stages(width=…, theme=…)` opens one more window."""
    from playwright.async_api import async_playwright

    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(console_of(host))
        play = await stack.enter_async_context(async_playwright())
        chromium = shutil.which("chromium")
        browser = await play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        stack.push_async_callback(browser.close)

        async def opened(*, width: int = 1280, theme: str = "light", script: bool = True) -> Stage:
            window = await browser.new_context(
                viewport={"width": width, "height": 900},
                color_scheme=theme,
                reduced_motion="reduce",
                java_script_enabled=script,
            )
            return Stage(host, base, await window.new_page())

        yield opened


@pytest.fixture
async def stage(stages: Any) -> Stage:
    return await stages()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, from the package registry."""
    import subprocess

    folder = tmp_path_factory.mktemp("axe")
    subprocess.run(["npm", "pack", "--silent", AXE], cwd=folder, check=True, timeout=120)
    (packed,) = folder.glob("axe-core-*.tgz")
    with tarfile.open(packed) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where screenshots go."""
    folder = Path(os.environ.get("OBSERVANT_HOST_SHOTS", tmp_path / "shots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
