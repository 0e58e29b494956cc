"""Every page of the console: whole, escaped, bounded, and without secrets."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import Host, StdioServer
from tests.service.console.stage import Browser, Page, browser, configured, console_of, event_about
from tests.support.hosts import NEVER_AGAIN, PATIENCE_S, QUICK, add, reach
from tests.support.peers import scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PAGES = (
    "/",
    "/console/servers",
    "/console/servers/good",
    "/console/servers/old",
    "/console/catalogue",
    "/console/catalogue?kind=prompts",
    "/console/catalogue?kind=resources&q=notes",
    "/console/calls",
    "/console/timeline",
    "/console/timeline?server=old",
    "/console/call",
    "/console/call?name=good/evil",
)
SECRET = "hunter2-hunter2"
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e\x1b[31m"
TOOL: dict[str, Any] = {
    "name": "evil",
    "title": EVIL,
    "description": f"{EVIL} {SECRET}",
    "inputSchema": {
        "type": "object",
        "properties": {
            EVIL: {"type": "string", "description": EVIL, "default": EVIL},
            "choice": {"enum": [EVIL, 1, None]},
        },
    },
}


class Stage:
    def __init__(self, host: Host, base: str, browser: Browser) -> None:
        self.host, self.base, self.browser = host, base, browser

    async def page(self, path: str) -> Page:
        status, page = await self.browser.get(path)
        assert status == 200, page.text
        return page


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    host = Host(config=configured(), startup_deadline_s=PATIENCE_S)
    add(
        host,
        "good",
        {
            "tools": "echo,die,env",
            "tool_json": json.dumps(TOOL),
            "prompts": "greet",
            "resources": "file:///notes.txt",
            "server_version": EVIL,
        },
        **NEVER_AGAIN,
    )
    add(host, "old", {"era": "legacy", "discover": f"error:-32601:{json.dumps(EVIL)}"})
    launch = StdioServer(scripted(tools="echo"), env={"TOKEN": SECRET})
    host.add_server("twin", launch, **QUICK)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(host)
        base = await stack.enter_async_context(console_of(host))
        yield Stage(host, base, await stack.enter_async_context(browser(base)))


def judge(page: Page) -> list[str]:
    """What is wrong with a page's structure for a person who hears it, or uses a keyboard."""
    problems = list(page.problems)
    landmarks = ("header", "main", "footer", "nav", "title", "h1")
    problems += [f"no <{one}>" for one in landmarks if not page.all(one)]
    if len(page.all("h1")) != 1:
        problems.append("not one h1")
    ids = [have["id"] for _, have in page.elements if "id" in have]
    problems += [f"id {one} twice" for one in {*ids} if ids.count(one) > 1]
    labelled = {have["for"] for have in page.all("label")}
    for tag in ("input", "select", "textarea"):
        for have in page.all(tag):
            if have.get("type") != "hidden" and have.get("id") not in labelled:
                problems.append(f"<{tag} {have}> has no label")
    for _, have in page.elements:
        for key in ("href", "src", "action"):
            if not have.get(key, "/").startswith(("/", "#", "data:image/")):
                problems.append(f"{key}={have[key]} leads elsewhere")
        for one in (
            have.get("aria-labelledby", "").split() + have.get("aria-describedby", "").split()
        ):
            if one not in ids:
                problems.append(f"{one} labels and is not there")
    return problems


async def test_every_page_is_whole_and_nothing_in_it_comes_from_elsewhere(stage: Stage) -> None:
    for path in PAGES:
        assert (path, judge(await stage.page(path))) == (path, [])


async def test_what_servers_say_is_text_and_what_hides_in_it_is_shown(stage: Stage) -> None:
    for path in PAGES:
        source = (await stage.page(path)).source
        for bad in ("<img src=x", "<script>alert", "\u202e", "\x1b", SECRET):
            assert bad not in source, path


async def test_a_hostile_tool_is_shown_with_its_signs(stage: Stage) -> None:
    page = await stage.page("/console/call?name=good/evil")
    assert "<script>alert(1)</script>" in page.text
    assert "⟨U+202E⟩" in page.text
    assert "***" in page.text


async def test_the_refused_server_is_first_with_its_decision_and_a_button(stage: Stage) -> None:
    page = await stage.page("/")
    assert "decision waits" in page.text
    assert "observant-host allow old" in page.text
    assert page.all("button", value="allow", id="need-old-allow")
    assert "1 waiting" in page.text


async def test_a_server_that_is_down_is_an_outage_with_its_reason(stage: Stage) -> None:
    with pytest.raises(Exception, match="ended"):
        await stage.host.call_tool("die", {"status": 3})
    await reach(stage.host, "good", "backoff")
    page = await stage.page("/")
    assert "outage" in page.text
    assert "exited with status 3" in page.text
    assert page.all("button", value="retry", id="need-good-retry")


async def test_headers_keep_a_page_to_itself(stage: Stage) -> None:
    async with stage.browser.session.get(stage.base + "/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


async def test_assets_are_kept_for_ever_by_an_address_of_their_bytes(stage: Stage) -> None:
    page = await stage.page("/")
    for address in (page.all("link", rel="stylesheet")[0]["href"], page.all("script")[0]["src"]):
        async with stage.browser.session.get(stage.base + address) as answer:
            assert answer.status == 200
            assert "immutable" in answer.headers["Cache-Control"]
            assert await answer.read()
    status, _ = await stage.browser.get("/console/static/..%2frender.py")
    assert status in (400, 404)


async def test_the_catalogue_shows_collisions_pins_and_costs_and_is_searched(stage: Stage) -> None:
    page = await stage.page("/console/catalogue")
    assert "echo belongs to good; also offered: twin/echo" in page.text
    assert "unlocked" in page.text
    assert "tokens for a model" in page.text
    found = await stage.page("/console/catalogue?q=twin+ECHO")
    assert "1 of 5 tools" in found.text
    nothing = await stage.page("/console/catalogue?q=%3Cb%3Enothing")
    assert "Nothing fits." in nothing.text
    assert nothing.all("input", name="q")[0]["value"] == "<b>nothing"


async def test_missing_servers_are_named_with_their_reason(stage: Stage) -> None:
    page = await stage.page("/console/catalogue")
    assert "old: unavailable (policy), ambiguous_error" in page.text


async def test_a_servers_page_has_layers_evidence_figures_decisions_and_tools(
    stage: Stage,
) -> None:
    page = await stage.page("/console/servers/good")
    for part in ("process ok", "server/discover", "in flight", "starting → ready", "echo"):
        assert part in page.text


async def test_a_server_that_a_person_switched_off_has_no_layers_in_red(stage: Stage) -> None:
    async def standing(path: str) -> int:
        page = await stage.page(path)
        return sum(have.get("class") == "layers standing" for _, have in page.elements)

    await stage.host.act("good", "disable", reason="moving it")
    assert await standing("/console/servers") == 1
    assert await standing("/console/servers/good") == 1
    await stage.host.act("good", "enable")
    assert await standing("/console/servers/good") == 0


async def test_calls_that_ended_are_listed_with_outcome_duration_and_trace(stage: Stage) -> None:
    result = await stage.host.call_tool("good/echo", {"text": "x"}, principal="ann")
    page = await stage.page("/console/calls")
    assert "No call is open." in page.text
    assert "ann" in page.text
    assert result.trace_id is not None
    assert result.trace_id in page.text.replace(" ", "")


async def test_the_timeline_is_newest_first_and_of_one_server_where_asked(stage: Stage) -> None:
    await stage.host.act("good", "hold", principal="ann", reason="because")
    page = await stage.page("/console/timeline")
    assert page.text.index("ann did hold: because") < page.text.index("starting → ready")
    only = await stage.page("/console/timeline?server=old")
    assert "ann did hold" not in only.text
    assert "Incidents of the last day are not shown" in only.text


ODD = {
    "/console/servers/nobody": 404,
    "/console/servers/%3Cscript%3E": 404,
    "/console/timeline?page=9999999999&until=x": 200,
    "/console/timeline?page=3": 200,
    "/console/catalogue?kind=%00&q=" + "x" * 5000: 200,
    "/console/call?name=" + "%f0%9f%a6%80" * 300: 200,
    "/console/nothing": 404,
}


async def test_odd_questions_get_plain_answers(stage: Stage) -> None:
    for path, status in ODD.items():
        found, page = await stage.browser.get(path)
        assert (path, found, page.problems) == (path, status, [])


async def test_a_change_is_told_at_once(stage: Stage) -> None:
    async def hold() -> None:
        await stage.host.act("good", "hold", principal="ann")

    told = await event_about(stage.base, "decision", '"ann"', trigger=hold)
    assert '"good"' in told
