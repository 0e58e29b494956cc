"""With tokens configured: who gets in, as whom, and for how long."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from observant_host.config import Profile, Token
from observant_host.telemetry.vocabulary import OperatorAct
from tests.service.console.stage import Browser, browser, configured, console_of
from tests.support.hosts import NEVER_AGAIN, add, facts, quick_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host
    from observant_host.telemetry.facade import Finished


class Stage:
    def __init__(self, host: Host, told: list[Finished], browser: Browser, file: Path) -> None:
        self.host, self.told, self.browser, self.file = host, told, browser, file

    async def sign_in(self, token: str, back: str = "") -> tuple[int, str, str]:
        """(status, text, where it leads)"""
        _, page = await self.browser.get("/console/login")
        fields = {"word": page.word, "token": token, "back": back}
        status, answer, leads = await self.browser.post("/console/login", fields)
        return status, answer.text, leads


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    file = tmp_path / "ann"
    file.write_text("ann-secret\n")
    boris = tmp_path / "boris"
    boris.write_text("boris-secret")
    agent = tmp_path / "agent"
    agent.write_text("agent-secret")
    tokens = {
        "ann": Token(file=str(file), scopes=("read", "operate", "mcp")),
        "boris": Token(file=str(boris), scopes=("read",), profile="small"),
        "agent": Token(file=str(agent), scopes=("mcp",)),
    }
    config = configured(tokens=tokens, profiles={"small": Profile(servers=("shared",))})
    host, told = quick_host(config=config)
    add(host, "shared", {"tools": "echo"}, **NEVER_AGAIN)
    add(host, "private", {"tools": "hidden"}, **NEVER_AGAIN)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(host)
        base = await stack.enter_async_context(console_of(host))
        yield Stage(host, told, await stack.enter_async_context(browser(base)), file)


async def test_a_page_leads_to_the_sign_in_and_from_there_back(stage: Stage) -> None:
    status, page = await stage.browser.get("/console/calls")
    assert status == 200
    assert "Sign in" in page.text
    assert page.all("input", name="back")[0]["value"] == "/console/calls"
    status, _, leads = await stage.sign_in("ann-secret", back="/console/calls")
    assert (status, leads) == (303, "/console/calls")
    status, page = await stage.browser.get("/console/calls")
    assert "Sign out ann" in page.text


async def test_an_act_is_recorded_with_the_name_of_the_token(stage: Stage) -> None:
    await stage.sign_in("ann-secret")
    _, page = await stage.browser.get("/console/servers/shared")
    fields = {"word": page.word, "act": "hold", "reason": "lunch"}
    status, _, _ = await stage.browser.post("/console/servers/shared/act", fields)
    assert status == 303
    act = facts(stage.told, OperatorAct)[-1]
    assert (act.principal, act.reason) == ("ann", "lunch")


async def test_a_wrong_token_or_one_without_the_scope_does_not_get_in(stage: Stage) -> None:
    for token, status in (("wrong", 401), ("", 401), ("agent-secret", 403)):
        found, text, _ = await stage.sign_in(token)
        assert (token, found) == (token, status)
        assert "Sign in" in text
    _, page = await stage.browser.get("/")
    assert "Needs a person" not in page.text


async def test_who_may_only_read_sees_no_forms_and_cannot_act(stage: Stage) -> None:
    await stage.sign_in("boris-secret")
    _, page = await stage.browser.get("/console/servers/shared")
    assert not page.all("button", value="hold")
    _, page = await stage.browser.get("/console/call?name=shared/echo")
    assert "does not have the scope mcp" in page.text
    for path, fields in (
        ("/console/servers/shared/act", {"act": "hold"}),
        ("/console/call", {"name": "shared/echo"}),
        ("/console/calls/1/cancel", {}),
    ):
        status, _, _ = await stage.browser.post(path, {"word": page.word, **fields})
        assert (path, status) == (path, 403)
    assert stage.host.servers["shared"].ruling is None


async def test_a_profile_hides_what_is_not_in_it(stage: Stage) -> None:
    await stage.host.call_tool("private/hidden", {})
    await stage.sign_in("boris-secret")
    for path in ("/", "/console/servers", "/console/catalogue", "/console/calls"):
        _, page = await stage.browser.get(path)
        assert "private" not in page.source, path
        assert "hidden</code>" not in page.source, path
    status, _ = await stage.browser.get("/console/servers/private")
    assert status == 404
    _, page = await stage.browser.get("/console/call?name=private/hidden")
    assert "No tool is named" in page.text


async def test_a_token_that_was_replaced_ends_its_sessions(stage: Stage) -> None:
    await stage.sign_in("ann-secret")
    stage.file.write_text("another-secret\n")
    clock = stage.host.core.plan.clock
    page = None
    until = clock.monotonic() + 10
    while clock.monotonic() < until:
        _, page = await stage.browser.get("/")
        if "Sign in" in page.text:
            break
        await clock.sleep(0.1)
    assert page is not None
    assert "Sign in" in page.text


async def test_signing_out_ends_the_session_and_a_changed_cookie_is_none(stage: Stage) -> None:
    await stage.sign_in("ann-secret")
    kept = {one.key: one.value for one in stage.browser.session.cookie_jar}
    assert "ann-secret" not in str(kept)
    _, page = await stage.browser.get("/")
    status, _, leads = await stage.browser.post("/console/logout", {"word": page.word})
    assert (status, leads) == (303, "/console/login")
    _, page = await stage.browser.get("/")
    assert "Sign in" in page.text
    for cookie in kept.values():
        body, _, signature = cookie.partition(".")
        forged = (body, f"{body}.{'0' * 64}", f"{body[:-4]}AAAA.{signature}", "\u00e9.")
        for made_up in (cookie, *forged):
            headers = {"Cookie": f"observant_host_console={made_up}"}
            async with browser(stage.browser.base) as other:
                _, page = await other.get("/", **headers)
            assert "Sign in" in page.text


async def test_a_header_with_a_token_opens_the_pages_too(stage: Stage) -> None:
    _, page = await stage.browser.get("/", Authorization="Bearer ann-secret")
    assert "Needs a person" in page.text
    status, _ = await stage.browser.get("/", Authorization="Bearer wrong")
    assert status == 401


async def test_the_stream_of_changes_is_not_open_to_anybody(stage: Stage) -> None:
    async with stage.browser.session.get(
        stage.browser.base + "/console/events", allow_redirects=False
    ) as answer:
        assert answer.status == 303
