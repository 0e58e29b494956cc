"""openai-agents: its MCP server class, and an agent whose model is scripted to call one tool. Which
revision it speaks is up to the SDK below it: 1.x or 2.x.

python openai_agents.py URL
"""

import asyncio
import sys

from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from agents.models.interface import Model
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from told import Told, expect, until

changed = asyncio.Event()


class Scripted(Model):
    """Calls `add` once, then says what came back."""

    async def get_response(self, *_, **given) -> ModelResponse:
        outputs = [one["output"] for one in given["input"] if "output" in one]
        if outputs:
            said = ResponseOutputText(text=str(outputs[0]), type="output_text", annotations=[])
            answer = ResponseOutputMessage(
                id="2", role="assistant", status="completed", type="message", content=[said]
            )
        else:
            answer = ResponseFunctionToolCall(
                call_id="1", name="add", arguments='{"a": 2, "b": 3}', type="function_call"
            )
        return ModelResponse(output=[answer], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


async def lists(server: MCPServerStreamableHttp) -> None:
    names = {tool.name for tool in await server.list_tools()}
    assert {"add", "subtract"} <= names, names
    names = {prompt.name for prompt in (await server.list_prompts()).prompts}
    assert {"welcome", "greet"} <= names, names
    uris = {str(resource.uri) for resource in (await server.list_resources()).resources}
    assert {"memo://hello", "note://hello"} <= uris, uris


async def calls(server: MCPServerStreamableHttp) -> None:
    expect("-1", (await server.call_tool("subtract", {"a": 2, "b": 3})).content[0].text)
    agent = Agent(name="one", model=Scripted(), mcp_servers=[server])
    expect("5", (await Runner.run(agent, [{"role": "user", "content": "2 + 3?"}])).final_output)


async def prompts(server: MCPServerStreamableHttp) -> None:
    expect("Welcome Ada", await server.get_prompt("welcome", {"name": "Ada"}))


async def reads(server: MCPServerStreamableHttp) -> None:
    expect("a memo for all", await server.read_resource("memo://hello"))


async def cancels(server: MCPServerStreamableHttp) -> None:
    async with MCPServerStreamableHttp({"url": sys.argv[1]}) as beside:

        async def number(tool: str) -> int:
            return int((await beside.call_tool(tool, {})).content[0].text)

        async def begun() -> bool:
            return await number("lingering") == 1

        async def cancelled() -> bool:
            return await number("lingered") == before + 1

        before = await number("lingered")
        call = asyncio.create_task(server.call_tool("linger", {}))
        await until("it lingers", begun)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until("it was cancelled", cancelled)


async def hears(server: MCPServerStreamableHttp) -> None:
    name = (await server.call_tool("sprout", {})).content[0].text
    await changed.wait()

    async def listed() -> bool:
        return name in {tool.name for tool in await server.list_tools()}

    await until("it is listed", listed)


async def heard(message: object) -> None:
    if "ToolListChanged" in repr(message):
        changed.set()


def version(server: MCPServerStreamableHttp) -> str:
    result = server.server_initialize_result
    return result.protocolVersion if result else server.session.protocol_version


async def main() -> None:
    set_tracing_disabled(True)
    told = Told()
    given = {"client_session_timeout_seconds": 30, "message_handler": heard}
    async with MCPServerStreamableHttp({"url": sys.argv[1]}, **given) as server:
        told.features["version"] = version(server)
        await told.tries("list", lambda: lists(server))
        await told.tries("call", lambda: calls(server))
        await told.tries("prompt", lambda: prompts(server))
        await told.tries("resource", lambda: reads(server))
        await told.tries("cancel", lambda: cancels(server))
        await told.tries("list change", lambda: hears(server))
    told.end()


asyncio.run(main())
