"""The console as a person meets it: in a browser, alive, by keyboard, at any width."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.hosts import reach

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host import Host
    from tests.browser.conftest import Stage

pytestmark = pytest.mark.browser

AT_ONCE_MS = 2000
"""What is promised: a change shows within two seconds, without a reload."""
PAGES = {
    "needs": "/",
    "servers": "/console/servers",
    "server": "/console/servers/weather",
    "server-refused": "/console/servers/archive",
    "catalogue": "/console/catalogue",
    "calls": "/console/calls",
    "timeline": "/console/timeline",
    "call": "/console/call?name=describe",
}
SERIOUS = ("serious", "critical")


async def test_a_killed_server_shows_at_once_with_its_reason_and_comes_back(
    host: Host, stage: Stage
) -> None:
    from playwright.async_api import expect

    await stage.followed("/console/servers")
    await stage.page.evaluate("window.neverReloaded = true")
    row = stage.page.locator("[data-server=weather]")
    await expect(row).to_contain_text("ready")
    pid = host.servers["weather"].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await expect(row).to_contain_text("backoff", timeout=AT_ONCE_MS)
    await expect(row).to_contain_text("SIGKILL")
    await expect(stage.page.locator("#told")).to_have_text("weather: backoff, process")
    await reach(host, "weather", "ready")
    await expect(row).to_contain_text("ready", timeout=AT_ONCE_MS)
    assert await stage.page.evaluate("window.neverReloaded")
    assert stage.errors == []


async def test_a_refused_server_offers_its_decision_and_allow_ends_the_wait(
    host: Host, stage: Stage
) -> None:
    from playwright.async_api import expect

    await stage.followed("/")
    card = stage.page.locator(".card.decision", has_text="archive")
    await expect(card).to_contain_text("decision waits")
    await expect(card).to_contain_text("observant-host allow archive")
    await card.get_by_label("Reason").fill("until its successor is ready")
    await card.get_by_role("button", name="Allow archive").click()
    await expect(stage.page.get_by_role("status").first).to_contain_text("legacy is allowed")
    await expect(stage.page.locator(".card.decision")).to_have_count(0)
    assert host.servers["archive"].state == "ready"
    await stage.goto("/console/timeline")
    await expect(stage.page.locator("#entries")).to_contain_text("until its successor is ready")
    assert stage.errors == []


async def test_a_call_from_the_form_made_of_a_tools_schema(stage: Stage) -> None:
    from playwright.async_api import expect

    page = stage.page
    await stage.goto("/console/call?name=describe")
    await page.get_by_label("Place").fill("<b>Alps</b>")
    await page.get_by_label("words").fill("3")
    await page.get_by_label("rhyme").select_option("true")
    await page.get_by_role("button", name="Call describe").click()
    result = page.locator(".result")
    await expect(result).to_contain_text("ok")
    await expect(result).to_contain_text("replied")
    await expect(page.get_by_label("Place")).to_have_value("<b>Alps</b>")
    await stage.goto("/console/calls")
    await expect(page.locator("#recent")).to_contain_text("describe")
    assert stage.errors == []


async def test_what_is_being_typed_survives_what_changes_around_it(
    host: Host, stage: Stage
) -> None:
    from playwright.async_api import expect

    await stage.followed("/")
    reason = stage.page.locator("#need-archive-reason")
    await reason.press_sequentially("because I")
    await host.act("notes", "hold", principal="ann")
    await expect(stage.page.locator("#need-notes-enable")).to_be_visible()
    await expect(reason).to_be_focused()
    await reason.press_sequentially(" say so")
    await expect(reason).to_have_value("because I say so")


async def test_a_search_narrows_the_list_while_it_is_typed(stage: Stage) -> None:
    from playwright.async_api import expect

    await stage.goto("/console/catalogue")
    rows = stage.page.locator("#listed tbody tr")
    await expect(rows).to_have_count(8)
    await stage.page.get_by_label("Search tools").press_sequentially("notes search")
    await expect(rows).to_have_count(1)
    assert "q=notes+search" in stage.page.url


async def test_everything_is_there_and_works_without_script(host: Host, stages: Any) -> None:
    from playwright.async_api import expect

    stage = await stages(script=False)
    for path in PAGES.values():
        await stage.goto(path)
        await expect(stage.page.locator("h1")).to_be_visible()
    await stage.goto("/console/servers/notes")
    await stage.page.locator("#act-reason").fill("no script")
    await stage.page.get_by_role("button", name="Hold notes").click()
    await expect(stage.page.get_by_text("Done: it is held.")).to_be_visible()
    assert host.servers["notes"].ruling is not None
    await stage.page.get_by_role("button", name="Disable this tool").click()
    await expect(stage.page.get_by_text("Done: the tool is off.")).to_be_visible()


async def test_a_keyboard_is_enough(stage: Stage) -> None:
    from playwright.async_api import expect

    page = stage.page
    await stage.goto("/")
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    await expect(skip).to_be_focused()
    await expect(skip).to_be_in_viewport()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    seen = []
    for _ in range(40):
        await page.keyboard.press("Tab")
        here = await page.evaluate(
            "(() => { const e = document.activeElement; const s = getComputedStyle(e);"
            " return [e.id || e.textContent.trim(), s.outlineStyle !== 'none']; })()"
        )
        if here[0] in [name for name, _ in seen]:
            break
        seen.append(here)
        if here[0] == "need-archive-allow":
            break
    assert seen[-1][0] == "need-archive-allow", seen
    assert [name for name, outlined in seen if not outlined] == []
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Done: legacy is allowed.")).to_be_visible()


async def test_a_host_that_is_gone_is_said_to_be(stage: Stage) -> None:
    from playwright.async_api import expect

    await stage.followed("/")
    await stage.page.context.set_offline(True)
    await stage.host.act("notes", "hold", principal="ann")
    await stage.page.evaluate("dispatchEvent(new Event('pagehide'))")
    await stage.page.evaluate("dispatchEvent(new Event('pageshow'))")
    await expect(stage.page.locator("#link")).to_contain_text("No connection to the host")


@pytest.mark.parametrize("width", [700, 1000])
async def test_pages_fit_between_a_phone_and_a_desk(stages: Any, width: int) -> None:
    stage = await stages(width=width)
    for name, path in PAGES.items():
        await stage.goto(path)
        assert (name, await stage.wider()) == (name, 0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
async def test_pages_fit_axe_finds_nothing_serious_and_pictures_are_kept(
    host: Host, stages: Any, axe: str, shots: Path, *, width: int, theme: str
) -> None:
    await host.act("notes", "hold", principal="ann", reason="moving to another machine")
    for text in ("one", "two"):
        await host.call_tool("weather/echo", {"text": text}, principal="agent")
    await host.call_tool("fail", {}, principal="agent")
    stage = await stages(width=width, theme=theme)
    for name, path in PAGES.items():
        await stage.goto(path)
        assert (name, await stage.wider()) == (name, 0)
        picture = shots / f"{name}-{width}-{theme}.png"
        await stage.page.screenshot(path=picture, full_page=True)
        await stage.page.evaluate(axe)
        assert (name, _serious(await stage.page.evaluate("axe.run()"))) == (name, [])
    assert stage.errors == []


def _serious(found: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ]
