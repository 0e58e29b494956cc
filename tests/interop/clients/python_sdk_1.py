"""The official Python SDK 1.x as a client, as most agents of today have it.

python python_sdk_1.py URL
"""

import asyncio
import sys

from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl
from told import Told, expect, until

changed = asyncio.Event()


async def heard(message: object) -> None:
    if isinstance(getattr(message, "root", None), types.ToolListChangedNotification):
        changed.set()


async def lists(client: ClientSession) -> None:
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert {"add", "subtract"} <= names, names
    names = {prompt.name for prompt in (await client.list_prompts()).prompts}
    assert {"welcome", "greet"} <= names, names
    uris = {str(resource.uri) for resource in (await client.list_resources()).resources}
    assert {"memo://hello", "note://hello"} <= uris, uris


async def calls(client: ClientSession) -> None:
    expect("5", (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text)
    expect("-1", (await client.call_tool("subtract", {"a": 2, "b": 3})).content[0].text)


async def prompts(client: ClientSession) -> None:
    expect("Welcome Ada", await client.get_prompt("welcome", {"name": "Ada"}))
    expect("hello to Ada", await client.get_prompt("greet", {"name": "Ada"}))


async def reads(client: ClientSession) -> None:
    expect("a memo for all", await client.read_resource(AnyUrl("memo://hello")))
    expect("hello", await client.read_resource(AnyUrl("note://hello")))


async def progresses(client: ClientSession) -> None:
    seen = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    expect("there", await client.call_tool("steps", {}, progress_callback=told))

    async def all_three() -> bool:
        return seen == [(n, 3, f"step {n}") for n in (1, 2, 3)]

    await until("three steps", all_three)


async def cancels(client: ClientSession) -> None:
    async def number() -> int:
        return int((await client.call_tool("lingered", {})).content[0].text)

    before, begun = await number(), asyncio.Event()

    async def told(*_: object) -> None:
        begun.set()

    request = client._request_id  # this SDK has no other way to know it
    call = asyncio.create_task(client.call_tool("linger", {}, progress_callback=told))
    await begun.wait()
    params = types.CancelledNotificationParams(requestId=request, reason="enough")
    cancelled = types.CancelledNotification(params=params)
    await client.send_notification(types.ClientNotification(cancelled))

    async def counted() -> bool:
        return await number() == before + 1

    await until("it was cancelled", counted)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)


async def hears(client: ClientSession) -> None:
    name = (await client.call_tool("sprout", {})).content[0].text
    await changed.wait()

    async def listed() -> bool:
        return name in {tool.name for tool in (await client.list_tools()).tools}

    await until("it is listed", listed)


async def main() -> None:
    told = Told()
    async with (
        streamable_http_client(sys.argv[1]) as (reading, writing, _),
        ClientSession(reading, writing, message_handler=heard) as client,
    ):
        told.features["version"] = (await client.initialize()).protocolVersion
        await told.tries("list", lambda: lists(client))
        await told.tries("call", lambda: calls(client))
        await told.tries("prompt", lambda: prompts(client))
        await told.tries("resource", lambda: reads(client))
        await told.tries("progress", lambda: progresses(client))
        await told.tries("cancel", lambda: cancels(client))
        await told.tries("list change", lambda: hears(client))
    told.end()


asyncio.run(main())
