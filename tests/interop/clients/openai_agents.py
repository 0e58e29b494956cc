"""openai-agents: its MCP server class, and an agent whose model is scripted to call one tool.

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
from told import Told, expect


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


async def main() -> None:
    set_tracing_disabled(True)
    told = Told()
    async with MCPServerStreamableHttp(
        {"url": sys.argv[1]}, client_session_timeout_seconds=30
    ) as server:
        told.features["version"] = server.session.protocol_version
        await told.tries("list", lambda: lists(server))
        await told.tries("call", lambda: calls(server))
        await told.tries("prompt", lambda: prompts(server))
        await told.tries("resource", lambda: reads(server))
    told.end()


asyncio.run(main())
