"""A client on the official Python SDK 1.x: `python asked_sdk_1.py URL`, or `… COMMAND ARGUMENT…`.

Does what an agent does and prints one JSON object.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


@asynccontextmanager
async def connected(words):
    if words[0].startswith("http"):
        async with streamablehttp_client(words[0]) as (read, write, _):
            yield read, write
    else:
        parameters = StdioServerParameters(command=words[0], args=words[1:])
        async with stdio_client(parameters) as (read, write):
            yield read, write


async def main(words):
    told, changed = [], asyncio.Event()

    async def heard(message):
        if isinstance(message, types.ServerNotification):
            told.append(message.root.method)
            if message.root.method == "notifications/tools/list_changed":
                changed.set()

    async def asked(_context, params):
        return types.ElicitResult(action="accept", content={"name": params.message})

    progress = []

    async def advanced(done, total, message):
        progress.append(done)

    async with connected(words) as (read, write):
        keys = {"message_handler": heard, "elicitation_callback": asked}
        async with ClientSession(read, write, **keys) as session:
            welcome = await session.initialize()
            tools = await session.list_tools()
            echoed = await session.call_tool("echo", {"text": "hi"})
            await session.call_tool("progress", {"n": 3, "s": 0}, progress_callback=advanced)
            prompts = await session.list_prompts()
            prompt = await session.get_prompt(prompts.prompts[0].name)
            resources = await session.list_resources()
            read_back = await session.read_resource(resources.resources[0].uri)
            form = {
                "message": "ann",
                "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
            }
            arguments = {"key": "k", "method": "elicitation/create", "params": form}
            elicited = await session.call_tool("ask", arguments)
            changed.clear()
            await session.call_tool("add_tool", {"name": "more"})
            await asyncio.wait_for(changed.wait(), 20)
            after = await session.list_tools()
            await session.send_ping()
    print(
        json.dumps(
            {
                "version": welcome.protocolVersion,
                "tools": [tool.name for tool in tools.tools],
                "after": [tool.name for tool in after.tools],
                "echoed": echoed.content[0].text,
                "progress": progress,
                "prompt": prompt.messages[0].content.text,
                "resource": read_back.contents[0].text,
                "elicited": elicited.content[0].text,
            }
        )
    )


asyncio.run(main(sys.argv[1:]))
