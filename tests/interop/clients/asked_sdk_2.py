"""A client on the official Python SDK 2.x: `python asked_sdk_2.py MODE URL`, or `… MODE COMMAND
ARGUMENT…`; the mode is "auto" or "legacy".

Does what an agent does and prints one JSON object.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, types


async def main(mode, words):
    changed, progress = asyncio.Event(), []

    async def heard(message):
        inner = getattr(message, "root", message)
        if getattr(inner, "method", "") == "notifications/tools/list_changed":
            changed.set()

    async def asked(_context, params):
        return types.ElicitResult(action="accept", content={"name": params.message})

    async def advanced(done, total=None, message=None):
        progress.append(done)

    if words[0].startswith("http"):
        server = words[0]
    else:
        server = StdioServerParameters(command=words[0], args=words[1:])
    keys = {"mode": mode, "message_handler": heard, "elicitation_callback": asked}
    async with Client(server, **keys) as client:
        tools = await client.list_tools()
        echoed = await client.call_tool("echo", {"text": "hi"})
        await client.call_tool("progress", {"n": 3, "s": 0}, progress_callback=advanced)
        prompts = await client.list_prompts()
        prompt = await client.get_prompt(prompts.prompts[0].name)
        resources = await client.list_resources()
        read_back = await client.read_resource(resources.resources[0].uri)
        form = {
            "message": "ann",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
        arguments = {"key": "k", "method": "elicitation/create", "params": form}
        elicited = await client.call_tool("ask", arguments)
        if mode == "legacy":
            await client.call_tool("add_tool", {"name": "more"})
            await asyncio.wait_for(changed.wait(), 20)
        else:
            async with client.listen(tools_list_changed=True) as events:
                await client.call_tool("add_tool", {"name": "more"})
                async for _ in events:
                    break
        after = await client.list_tools()
        print(
            json.dumps(
                {
                    "version": client.protocol_version,
                    "tools": [tool.name for tool in tools.tools],
                    "after": [tool.name for tool in after.tools],
                    "echoed": echoed.content[0].text,
                    "progress": progress,
                    "prompt": prompt.messages[0].content.text,
                    "resource": read_back.contents[0].text,
                    "elicited": elicited.content[0].text,
                }
            ),
            flush=True,
        )


asyncio.run(main(sys.argv[1], sys.argv[2:]))
