"""All pages of all that was announced, within budgets, each failure losing only itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from observant_host.config import ToolFilter
from observant_host.decisions.catalogue import (
    Excluded,
    ListedPrompt,
    ListedResource,
    ListedTool,
    Listing,
)
from observant_host.decisions.terms import ExclusionReason
from observant_host.errors import Unavailable
from observant_host.peers.discovery import list_everything
from observant_host.peers.pages import ListBounds
from observant_host.telemetry.vocabulary import Request
from tests.peers.desk import Desk

TOOLS = {"tools": {}}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


async def listing(
    desk: Desk,
    *,
    bounds: ListBounds | None = None,
    tool_filter: ToolFilter | None = None,
    previous: Listing | None = None,
) -> Listing:
    return await list_everything(
        desk.life,
        tool_filter=tool_filter or ToolFilter(),
        bounds=bounds or ListBounds(),
        previous=previous,
    )


def paged(desk: Desk, *pages: dict[str, Any]) -> None:
    """Answers `tools/list` with these, one after another."""
    rest = iter(pages)
    desk.answer = lambda message: desk.result(message, next(rest))


def cursors(desk: Desk) -> list[str | None]:
    return [message["params"].get("cursor") for message in desk.sent]


async def test_nothing_unannounced_is_asked_for() -> None:
    desk = await Desk().modern(logging={})
    assert await listing(desk) == Listing(server="tested", read_s=desk.clock.monotonic())
    assert desk.sent == []


async def test_everything_announced_is_listed_in_the_servers_order() -> None:
    desk = await Desk().modern(tools={}, prompts={}, resources={})
    answers = {
        "tools/list": {"tools": [tool("b"), tool("a", title="A", annotations={"readOnlyHint": 1})]},
        "prompts/list": {"prompts": [{"name": "p"}]},
        "resources/list": {"resources": [{"uri": "file:///x", "name": "x"}]},
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "f:{x}", "name": "t"}]},
    }
    desk.answer = lambda message: desk.result(message, answers[message["method"]])
    found = await listing(desk)
    assert [one.name for one in found.tools] == ["b", "a"]
    assert found.tools[1].title == "A"
    assert [one.name for one in found.prompts] == ["p"]
    assert [(one.uri, one.is_template) for one in found.resources] == [
        ("file:///x", False),
        ("f:{x}", True),
    ]
    assert found.complete
    assert found.truncated is None
    pages = [fact for fact in desk.facts(Request) if fact.purpose == "list"]
    assert [fact.page for fact in pages] == [1, 1, 1, 1]
    assert pages[0].items == 2


async def test_cursors_are_followed_byte_for_byte_and_empty_is_one() -> None:
    desk = await Desk().modern(**TOOLS)
    paged(
        desk,
        {"tools": [tool("a")], "nextCursor": " é/\u2028"},
        {"tools": [tool("b")], "nextCursor": ""},
        {"tools": [tool("c")], "nextCursor": None},
    )
    found = await listing(desk)
    assert cursors(desk) == [None, " é/\u2028", ""]
    assert [one.name for one in found.tools] == ["a", "b", "c"]
    assert found.truncated is None


@pytest.mark.parametrize("again", ["c", ""])
async def test_a_repeated_cursor_ends_the_list_with_what_came(again: str) -> None:
    desk = await Desk().modern(**TOOLS)
    desk.answer = lambda message: desk.result(
        message, {"tools": [tool(f"t{message['id']}")], "nextCursor": again}
    )
    found = await listing(desk)
    assert cursors(desk) == [None, again]
    assert [one.name for one in found.tools] == ["t1", "t2"]
    assert found.truncated is not None
    assert "repeated" in found.truncated
    assert found.complete


@pytest.mark.parametrize(
    ("bounds", "kept", "said"),
    [
        (ListBounds(pages=3), 6, "pages"),
        (ListBounds(items=5), 5, "entries"),
        (ListBounds(items=4), 4, "entries"),
    ],
)
async def test_budgets_of_pages_and_items_end_a_list_with_what_came(
    bounds: ListBounds, kept: int, said: str
) -> None:
    desk = await Desk().modern(**TOOLS)
    desk.answer = lambda message: desk.result(
        message,
        {
            "tools": [tool(f"t{message['id']}"), tool(f"u{message['id']}")],
            "nextCursor": str(message["id"]),
        },
    )
    found = await listing(desk, bounds=bounds)
    assert len(found.tools) == kept
    assert said in (found.truncated or "")
    assert len(desk.sent) < 5


async def test_the_time_budget_keeps_the_pages_that_came() -> None:
    desk = await Desk().modern(**TOOLS)

    def slowly(message: dict[str, Any]) -> None:
        if message["id"] == 1:
            desk.result(message, {"tools": [tool("a")], "nextCursor": "x"})

    desk.answer = slowly
    task = asyncio.create_task(listing(desk, bounds=ListBounds(seconds=5)))
    await desk.clock.advance(6)
    found = await task
    assert [one.name for one in found.tools] == ["a"]
    assert "5 seconds" in (found.truncated or "")


async def test_a_lost_cursor_restarts_the_list_once() -> None:
    desk = await Desk().modern(**TOOLS)
    lost = iter([True, False])

    def answer(message: dict[str, Any]) -> None:
        if "cursor" not in message["params"]:
            desk.result(message, {"tools": [tool("a")], "nextCursor": "x"})
        elif next(lost):
            desk.error(message, -32602)
        else:
            desk.result(message, {"tools": [tool("b")]})

    desk.answer = answer
    found = await listing(desk)
    assert cursors(desk) == [None, "x", None, "x"]
    assert [one.name for one in found.tools] == ["a", "b"]
    assert found.complete


async def test_a_cursor_lost_twice_fails_the_list() -> None:
    desk = await Desk().modern(**TOOLS)

    def answer(message: dict[str, Any]) -> None:
        if "cursor" in message["params"]:
            desk.error(message, -32602)
        else:
            desk.result(message, {"tools": [tool("a")], "nextCursor": "x"})

    desk.answer = answer
    found = await listing(desk)
    assert len(desk.sent) == 4
    assert not found.complete


async def test_a_failing_list_keeps_its_last_good_one_and_the_others() -> None:
    desk = await Desk().modern(tools={}, prompts={}, resources={})
    before = Listing(
        server="tested",
        tools=(ListedTool(name="old", raw=_raw(b"{}")),),
        prompts=(ListedPrompt(name="gone", raw=_raw(b"{}")),),
        excluded=(
            Excluded(server="tested", local_name="x", reason=ExclusionReason.INVALID_SCHEMA),
            Excluded(
                server="tested",
                local_name="y",
                reason=ExclusionReason.INVALID_NAME,
                kind="prompt",
            ),
        ),
    )

    def answer(message: dict[str, Any]) -> None:
        match message["method"]:
            case "prompts/list":
                desk.result(message, {"prompts": []})
            case "resources/list":
                desk.result(message, {"resources": [{"uri": "u", "name": "n"}]})
            case "resources/templates/list":
                desk.error(message, -32601)
            case _:
                desk.error(message, -32603)

    desk.answer = answer
    found = await listing(desk, previous=before)
    assert [one.name for one in found.tools] == ["old"]
    assert found.prompts == ()
    assert [one.uri for one in found.resources] == ["u"]
    assert [one.local_name for one in found.excluded] == ["x"]
    assert not found.complete
    assert "tools/list failed" in (found.truncated or "")
    assert "templates" not in (found.truncated or "")


async def test_each_kind_of_list_is_kept_by_itself() -> None:
    desk = await Desk().modern(prompts={}, resources={})
    before = Listing(
        server="tested",
        prompts=(ListedPrompt(name="kept", raw=_raw(b"{}")),),
        resources=(
            ListedResource(uri="file:///kept", raw=_raw(b"{}")),
            ListedResource(uri="f:{kept}", raw=_raw(b"{}"), is_template=True),
        ),
    )
    desk.answer = lambda message: desk.error(message, -32603)
    found = await listing(desk, previous=before)
    assert (found.prompts, found.resources) == (before.prompts, before.resources)
    assert not found.complete


@pytest.mark.parametrize(
    "result",
    [
        {"tools": "no list"},
        {"resultType": "input_required", "requestState": "s"},
        {"tools": [], "nextCursor": 7},
        [],
    ],
)
async def test_an_answer_that_is_no_list_fails_it(result: Any) -> None:
    desk = await Desk().modern(**TOOLS)
    desk.answer = lambda message: desk.result(message, result)
    assert not (await listing(desk)).complete


async def test_the_end_of_the_life_ends_the_listing() -> None:
    desk = await Desk().modern(**TOOLS)
    desk.answer = lambda _message: desk.transport.link.end()
    with pytest.raises(Unavailable):
        await listing(desk)


async def test_each_bad_entry_loses_only_itself_with_its_reason() -> None:
    desk = await Desk().modern(**TOOLS)
    good = tool("good", _meta={"x": 1})
    paged(
        desk,
        {
            "tools": [
                good,
                {"name": "no_schema"},
                tool("null_schema", inputSchema=None),
                tool("bad", inputSchema={"type": "objekt"}),
                tool(""),
                {"inputSchema": {"type": "object"}},
                42,
                tool("denied"),
            ],
            "nextCursor": "x",
        },
        {"tools": [tool("good"), tool("last")]},
    )
    found = await listing(desk, tool_filter=ToolFilter(deny=("den*",)))
    assert [one.name for one in found.tools] == ["good", "last"]
    reasons = [(one.local_name, one.reason) for one in found.excluded]
    assert ("denied", ExclusionReason.DENIED) in reasons
    assert ("good", ExclusionReason.DUPLICATE_IN_SERVER) in reasons
    assert ("null_schema", ExclusionReason.INVALID_SCHEMA) in reasons
    assert len(found.excluded) == 8


@pytest.mark.parametrize(
    ("capability", "flagged"),
    [({}, False), ({"tasks": {"requests": {"tools": {"call": {}}}}}, True), ({"tasks": 1}, False)],
)
async def test_tools_that_require_tasks_are_marked_where_the_server_has_them(
    capability: dict[str, Any], flagged: bool
) -> None:
    desk = await Desk().legacy(tools={}, **capability)
    paged(desk, {"tools": [tool("t", execution={"taskSupport": "required"})]})
    (found,) = (await listing(desk)).tools
    assert found.task_required is flagged


async def test_legacy_lists_have_the_legacy_shape() -> None:
    desk = await Desk().legacy(tools={})
    paged(desk, {"tools": [tool("a")], "nextCursor": "x"}, {"tools": []})
    await listing(desk)
    assert [one.get("params") for one in desk.sent] == [None, {"cursor": "x"}]


async def test_many_tools_are_checked_without_holding_the_loop() -> None:
    desk = await Desk().modern(**TOOLS)
    paged(desk, {"tools": [tool(f"t{number}") for number in range(500)]})
    assert len((await listing(desk)).tools) == 500


def _raw(data: bytes) -> Raw:
    return Raw(data)


async def test_a_list_is_as_fresh_as_the_first_of_its_pages_to_run_out() -> None:
    desk = await Desk().modern(tools={}, prompts={})
    ttls = {None: 60_000, "b": 5_000, "c": 30_000}

    def page(message: dict[str, Any]) -> None:
        cursor = message["params"].get("cursor")
        if message["method"] == "prompts/list":
            desk.result(message, {"prompts": [], "ttlMs": 10_000})
            return
        more = {None: {"nextCursor": "b"}, "b": {"nextCursor": "c"}, "c": {}}[cursor]
        desk.result(message, {"tools": [], "ttlMs": ttls[cursor], **more})

    desk.answer = page
    listing = await list_everything(desk.life, tool_filter=ToolFilter(), bounds=ListBounds())
    assert listing.read_s == desk.clock.monotonic()
    assert listing.fresh_until_s == desk.clock.monotonic() + 5.0
    old = await Desk().legacy(tools={})
    old.answer = lambda message: old.result(message, {"tools": [], "ttlMs": 5000})
    never = await list_everything(old.life, tool_filter=ToolFilter(), bounds=ListBounds())
    assert never.fresh_until_s == float("inf")


async def test_a_list_without_a_hint_is_stale_at_once() -> None:
    desk = await Desk().modern(tools={})
    desk.answer = lambda message: desk.result(message, {"tools": []})
    listing = await list_everything(desk.life, tool_filter=ToolFilter(), bounds=ListBounds())
    assert listing.fresh_until_s == listing.read_s
