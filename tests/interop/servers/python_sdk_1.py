"""A server on the official Python SDK 1.x: legacy only, as many of its users still run it.

python python_sdk_1.py [stdio | streamable-http PORT | sse PORT]
"""

import asyncio
import sys

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion
from pydantic import BaseModel

TRANSPORT, PORT = [*sys.argv[1:], "stdio", "0"][:2]
server = FastMCP("python-sdk-1", port=int(PORT))
cancelled = 0


class Colour(BaseModel):
    colour: str


@server.tool()
def subtract(a: int, b: int) -> int:
    """Subtract one number from another."""
    return a - b


@server.tool()
async def count(context: Context) -> str:
    """Count to three, telling of each."""
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    return "counted"


@server.tool()
async def ask(context: Context) -> str:
    """Ask for a colour."""
    answer = await context.elicit("Which colour?", Colour)
    return f"{answer.action}: {answer.data.colour}"


@server.tool()
async def wait() -> str:
    """Take far too long."""
    global cancelled
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        cancelled += 1
        raise
    return "waited"


@server.tool()
def how_often_cancelled() -> int:
    """How many calls of `wait` were cancelled."""
    return cancelled


@server.tool()
async def grow(context: Context) -> str:
    """Add a tool and say so."""
    server.add_tool(lambda: "grown", name="grown", description="It was added.")
    await context.session.send_tool_list_changed()
    return "added"


@server.resource("note://hello")
def hello() -> str:
    """A greeting."""
    return "hello"


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note by name."""
    return f"note of {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


@server.completion()
async def complete(ref: object, argument: object, context: object) -> Completion:
    return Completion(values=["Ada", "Alan"], total=2, hasMore=False)


server.run(transport=TRANSPORT)
