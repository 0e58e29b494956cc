"""Forms of the console: only our own pages send them, and each act has who and why."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from observant_host.config import TelemetrySettings
from observant_host.telemetry import setup
from observant_host.telemetry.vocabulary import OperatorAct
from tests.service.console.stage import Browser, browser, configured, console_of
from tests.support.hosts import NEVER_AGAIN, add, facts, quick_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host
    from observant_host.telemetry.facade import Finished


ACT = "/console/servers/good/act"


class Stage:
    def __init__(self, host: Host, told: list[Finished], browser: Browser) -> None:
        self.host, self.told, self.browser = host, told, browser

    async def act(self, name: str, act: str, **fields: str) -> tuple[int, str, str]:
        """(status, text, where it leads), as from the first page."""
        _, page = await self.browser.get("/")
        sent = {"word": page.word, "act": act, **fields}
        status, answer, leads = await self.browser.post(f"/console/servers/{name}/act", sent)
        return status, answer.text, leads

    async def call(self, tool: str, **fields: str) -> tuple[int, str, str]:
        """(status, text, source) of the page with the result."""
        _, page = await self.browser.get("/console/call?name=" + tool)
        sent = {"word": page.word, "name": tool, **fields}
        status, answer, _ = await self.browser.post("/console/call", sent)
        return status, answer.text, answer.source


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    host, told = quick_host(config=configured())
    add(host, "good", {"tools": "echo,add,fail,slow,structured,mute"}, **NEVER_AGAIN)
    add(host, "old", {"era": "legacy"}, **NEVER_AGAIN)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(host)
        base = await stack.enter_async_context(console_of(host))
        yield Stage(host, told, await stack.enter_async_context(browser(base)))


async def test_allow_is_a_recorded_decision_with_who_and_why(stage: Stage) -> None:
    status, _, leads = await stage.act("old", "allow", reason="until it is replaced")
    assert (status, leads) == (303, "/?done=allow")
    assert stage.host.servers["old"].state == "ready"
    act = facts(stage.told, OperatorAct)[-1]
    assert (act.verb, act.peer, act.principal, act.reason) == (
        "allow",
        "old",
        "local",
        "until it is replaced",
    )
    _, page = await stage.browser.get(leads)
    assert "Done: legacy is allowed." in page.text


async def test_a_hold_stands_for_the_time_that_was_given(stage: Stage) -> None:
    status, _, leads = await stage.act(
        "good", "hold", **{"for": "2h"}, back="/console/servers/good"
    )
    assert (status, leads) == (303, "/console/servers/good?done=hold")
    ruling = stage.host.servers["good"].ruling
    assert ruling is not None
    assert ruling.until is not None
    assert ruling.until - ruling.time == pytest.approx(7200, abs=5)


async def test_one_tool_is_switched_off_and_on_and_the_others_go_on(stage: Stage) -> None:
    back = "/console/servers/good"
    status, _, leads = await stage.act("good", "disable", tool="add", reason="wrong", back=back)
    assert (status, leads) == (303, f"{back}?done=disable-tool")
    assert "add" not in {one.local_name for one in stage.host.catalogue.tools}
    assert "echo" in {one.local_name for one in stage.host.catalogue.tools}
    _, page = await stage.browser.get(leads)
    assert "Done: the tool is off." in page.text
    assert "add (off)" in page.text
    act = facts(stage.told, OperatorAct)[-1]
    assert (act.verb, act.detail, act.reason) == ("disable", "the tool good/add", "wrong")
    await stage.act("good", "enable", tool="add", back=back)
    assert "add" in {one.local_name for one in stage.host.catalogue.tools}


async def test_the_log_is_louder_for_a_time() -> None:
    telemetry = setup.build(TelemetrySettings(log_level="error"), version="1")
    host, _ = quick_host(config=configured(), telemetry=telemetry)
    assert telemetry.log is not None
    async with host, console_of(host) as base, browser(base) as one:
        _, page = await one.get("/console/servers")
        fields = {"word": page.word, "level": "debug", "for": "10m"}
        status, _, leads = await one.post("/console/log-level", fields)
        assert (status, leads) == (303, "/console/servers?done=log-level")
        assert telemetry.log.level == "debug"
        fields["level"] = "deafening"
        status, answer, _ = await one.post("/console/log-level", fields)
        assert status == 400
        assert "there is no level" in answer.text


async def test_frames_are_captured_for_a_time(tmp_path: Path) -> None:
    host, told = quick_host(config=configured(), state_dir=tmp_path)
    add(host, "good", {"tools": "echo"}, **NEVER_AGAIN)
    async with host, console_of(host) as base, browser(base) as one:
        _, page = await one.get("/console/servers/good")
        fields = {"word": page.word, "act": "capture", "for": "1m", "reason": "what does it say?"}
        status, _, leads = await one.post("/console/servers/good/act", fields)
        assert (status, leads) == (303, "/?done=capture")
        assert list((tmp_path / "capture").iterdir())
        act = facts(told, OperatorAct)[-1]
        assert (act.verb, act.peer, act.reason) == ("capture", "good", "what does it say?")


NONSENSE = (
    ("good", "restart", {"tool": "add"}, 404, "nothing that one tool can have"),
    ("good", "disable", {"tool": "nonsense"}, 404, "lists no tool"),
    ("good", "hold", {"for": "soon"}, 400, "write a duration"),
    ("good", "retry", {"for": "2h"}, 400, "takes no time"),
    ("good", "explode", {}, 404, "there is no act"),
    ("nobody", "retry", {}, 404, "no server"),
)


async def test_what_makes_no_sense_is_refused_in_words(stage: Stage) -> None:
    for name, act, fields, status, says in NONSENSE:
        found, text, _ = await stage.act(name, act, **fields)
        assert (act, found) == (act, status)
        assert says in text
        assert "not done" in text


FROM_ELSEWHERE: tuple[dict[str, str], ...] = (
    {},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
)


async def test_a_form_from_elsewhere_does_nothing(stage: Stage) -> None:
    _, page = await stage.browser.get("/")
    fields = {"word": page.word, "act": "disable"}
    for headers in FROM_ELSEWHERE:
        status, _, _ = await stage.browser.post(ACT, fields, headers=headers)
        assert (headers, status) == (headers, 403)
    assert stage.host.servers["good"].state == "ready"


async def test_a_browser_that_says_only_its_origin_is_believed(stage: Stage) -> None:
    _, page = await stage.browser.get("/")
    fields = {"word": page.word, "act": "hold"}
    headers = {"Origin": stage.browser.base}
    status, _, _ = await stage.browser.post(ACT, fields, headers=headers)
    assert status == 303


async def test_a_form_without_the_sessions_word_does_nothing(stage: Stage) -> None:
    await stage.browser.get("/")
    for word in ("", "0" * 64, "\u00e9"):
        status, page, _ = await stage.browser.post(ACT, {"word": word, "act": "disable"})
        assert status == 403
        assert "earlier session" in page.text
    assert stage.host.servers["good"].state == "ready"


async def test_the_word_of_another_session_does_nothing(stage: Stage) -> None:
    await stage.browser.get("/")
    async with browser(stage.browser.base) as other:
        _, page = await other.get("/")
    fields = {"word": page.word, "act": "disable"}
    status, _, _ = await stage.browser.post(ACT, fields)
    assert status == 403


async def test_a_page_elsewhere_that_leads_here_ends_no_session(stage: Stage) -> None:
    async with browser(stage.browser.base) as arriving:
        status, page = await arriving.get("/console/calls", Sec_Fetch_Site="cross-site")
        assert status == 200
        assert page.all("a", href="/console/calls")
        assert not list(arriving.session.cookie_jar)


async def test_a_form_leads_back_only_to_the_console(stage: Stage) -> None:
    for back in ("https://evil.example", "//evil.example", "/\\evil", ""):
        status, _, leads = await stage.act("good", "probe", back=back)
        assert (status, leads) == (303, "/?done=probe")


async def test_a_call_from_the_form_shows_its_result(stage: Stage) -> None:
    status, text, _ = await stage.call("good/add", more='{"a": 2, "b": 3}')
    assert status == 200
    assert "Result ok" in text
    assert "5" in text


async def test_what_a_tool_answers_is_text(stage: Stage) -> None:
    _, text, source = await stage.call("good/echo", **{"arg-0": "<b>bold</b>\u202e"})
    assert "<b>bold</b>⟨U+202E⟩" in text
    assert "<b>bold" not in source


async def test_a_tools_own_error_is_shown_as_such(stage: Stage) -> None:
    status, text, _ = await stage.call("good/fail")
    assert status == 200
    assert "tool_error" in text


NOT_CALLED = (
    ("good/add", {"more": "[1]"}, 400, "write a JSON object"),
    ("good/add", {"more": "{"}, 400, "is no JSON"),
    ("good/add", {"deadline": "-1"}, 400, "a number of seconds above 0"),
    ("good/mute", {"deadline": "0.2"}, 504, "timeout"),
)


async def test_a_call_that_cannot_be_made_says_why(stage: Stage) -> None:
    for tool, fields, status, says in NOT_CALLED:
        found, text, _ = await stage.call(tool, **fields)
        assert (tool, found) == (tool, status)
        assert says in text


async def test_a_tool_that_is_gone_is_not_called(stage: Stage) -> None:
    _, page = await stage.browser.get("/")
    for name in ("good/nothing", ""):
        sent = {"word": page.word, "name": name}
        status, answer, _ = await stage.browser.post("/console/call", sent)
        assert status == 404
        assert "no tool is named" in answer.text


async def test_a_call_in_flight_is_listed_and_can_be_cancelled(stage: Stage) -> None:
    call = asyncio.create_task(stage.host.call_tool("good/mute", {}, principal="ann"))
    async with asyncio.timeout(30):
        while not stage.host.calls_in_flight():
            await asyncio.sleep(0)
    _, page = await stage.browser.get("/console/calls")
    open_call = stage.host.calls_in_flight()[0]
    assert page.all("button", id=f"cancel-{open_call.id}")
    status, _, leads = await stage.browser.post(
        f"/console/calls/{open_call.id}/cancel", {"word": page.word}
    )
    assert (status, leads) == (303, "/console/calls?done=cancel")
    with pytest.raises(Exception, match="cancelled by local"):
        await call
    again, _, _ = await stage.browser.post(
        f"/console/calls/{open_call.id}/cancel", {"word": page.word}
    )
    assert again == 404
