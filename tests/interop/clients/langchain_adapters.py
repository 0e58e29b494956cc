"""langchain-mcp-adapters: tools as LangChain's own, prompts as messages, resources as blobs.

python langchain_adapters.py URL
"""

import asyncio
import sys

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from told import Told, expect, until

seen: list[tuple[float, float | None, str | None]] = []


async def progressed(progress: float, total: float | None, message: str | None, _: object) -> None:
    seen.append((progress, total, message))


async def tools(client: MultiServerMCPClient) -> dict[str, object]:
    return {tool.name: tool for tool in await client.get_tools()}


async def lists(client: MultiServerMCPClient) -> None:
    names = set(await tools(client))
    assert {"add", "subtract"} <= names, names


async def calls(client: MultiServerMCPClient) -> None:
    found = await tools(client)
    expect("5", await found["add"].ainvoke({"a": 2, "b": 3}))
    expect("-1", await found["subtract"].ainvoke({"a": 2, "b": 3}))


async def prompts(client: MultiServerMCPClient) -> None:
    given = {"name": "Ada"}
    expect("Welcome Ada", await client.get_prompt("all", "welcome", arguments=given))


async def reads(client: MultiServerMCPClient) -> None:
    (blob,) = await client.get_resources("all", uris="memo://hello")
    expect("a memo for all", blob.as_string())


async def progresses(client: MultiServerMCPClient) -> None:
    expect("there", await (await tools(client))["steps"].ainvoke({}))

    async def all_three() -> bool:
        return seen == [(n, 3, f"step {n}") for n in (1, 2, 3)]

    await until("three steps", all_three)


async def cancels(client: MultiServerMCPClient) -> None:
    found = await tools(client)

    async def number(tool: str) -> int:
        return int((await found[tool].ainvoke({}))[0]["text"])

    async def begun() -> bool:
        return await number("lingering") == 1

    async def cancelled() -> bool:
        return await number("lingered") == before + 1

    before = await number("lingered")
    call = asyncio.create_task(found["linger"].ainvoke({}))
    await until("it lingers", begun)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await until("it was cancelled", cancelled)


async def main() -> None:
    connection = {"transport": "streamable_http", "url": sys.argv[1]}
    callbacks = Callbacks(on_progress=progressed)
    client = MultiServerMCPClient({"all": connection}, callbacks=callbacks)
    told = Told()
    told.features["version"] = (await client.get_server_info())["all"].protocolVersion
    await told.tries("list", lambda: lists(client))
    await told.tries("call", lambda: calls(client))
    await told.tries("prompt", lambda: prompts(client))
    await told.tries("resource", lambda: reads(client))
    await told.tries("progress", lambda: progresses(client))
    await told.tries("cancel", lambda: cancels(client))
    told.end()


asyncio.run(main())
