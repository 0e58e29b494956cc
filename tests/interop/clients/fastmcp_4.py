"""fastmcp's own client.

python fastmcp_4.py MODE URL         MODE: auto or legacy
"""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.messages import MessageHandler
from mcp.client.subscriptions import listen
from told import Told, expect, until

changed = asyncio.Event()


class Heard(MessageHandler):
    async def on_tool_list_changed(self, message: object) -> None:
        changed.set()


async def lists(client: Client) -> None:
    names = {tool.name for tool in await client.list_tools()}
    assert {"add", "subtract"} <= names, names
    names = {prompt.name for prompt in await client.list_prompts()}
    assert {"welcome", "greet"} <= names, names
    uris = {str(resource.uri) for resource in await client.list_resources()}
    assert {"memo://hello", "note://hello"} <= uris, uris


async def calls(client: Client) -> None:
    expect("5", (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text)
    expect("-1", (await client.call_tool("subtract", {"a": 2, "b": 3})).content[0].text)


async def prompts(client: Client) -> None:
    expect("Welcome Ada", await client.get_prompt("welcome", {"name": "Ada"}))
    expect("hello to Ada", await client.get_prompt("greet", {"name": "Ada"}))


async def reads(client: Client) -> None:
    expect("a memo for all", await client.read_resource("memo://hello"))
    expect("hello", await client.read_resource("note://hello"))


async def progresses(client: Client) -> None:
    seen = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    expect("there", await client.call_tool("steps", {}, progress_handler=told))

    async def all_three() -> bool:
        return seen == [(n, 3, f"step {n}") for n in (1, 2, 3)]

    await until("three steps", all_three)


async def cancels(client: Client) -> None:
    async def number() -> int:
        return int((await client.call_tool("lingered", {})).content[0].text)

    before, begun = await number(), asyncio.Event()

    async def told(*_: object) -> None:
        begun.set()

    call = asyncio.create_task(client.call_tool("linger", {}, progress_handler=told))
    await begun.wait()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)

    async def cancelled() -> bool:
        return await number() == before + 1

    await until("it was cancelled", cancelled)


async def hears(client: Client) -> None:
    if client.session.protocol_version < "2026":
        name = (await client.call_tool("sprout", {})).content[0].text
        await changed.wait()
    else:  # fastmcp leaves it to the SDK
        async with listen(client.session, tools_list_changed=True) as stream:
            name = (await client.call_tool("sprout", {})).content[0].text
            expect("ToolsListChanged", type(await anext(stream)).__name__)

    async def listed() -> bool:
        return name in {tool.name for tool in await client.list_tools()}

    await until("it is listed", listed)


async def main() -> None:
    told = Told()
    async with Client(sys.argv[2], mode=sys.argv[1], message_handler=Heard()) as client:
        told.features["version"] = client.session.protocol_version
        await told.tries("list", lambda: lists(client))
        await told.tries("call", lambda: calls(client))
        await told.tries("prompt", lambda: prompts(client))
        await told.tries("resource", lambda: reads(client))
        await told.tries("progress", lambda: progresses(client))
        await told.tries("cancel", lambda: cancels(client))
        await told.tries("list change", lambda: hears(client))
    told.end()


asyncio.run(main())
