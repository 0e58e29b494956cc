"""A server with one of everything a client may use, under names of its own. SDK 2.x, stdio."""

import asyncio

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("featured", version="1.0.0")
lingering_now = 0
lingered_until_cancelled = 0
sprouts = 0


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def steps(context: Context) -> str:
    """Take three steps, telling of each."""
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    return "there"


@server.tool()
async def linger(context: Context) -> str:
    """Take far too long, after telling that it has begun."""
    global lingering_now, lingered_until_cancelled
    lingering_now += 1
    try:
        await context.report_progress(1, 2, "begun")
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        lingered_until_cancelled += 1
        raise
    finally:
        lingering_now -= 1
    return "lingered"


@server.tool()
def lingered() -> int:
    """How many calls of `linger` were cancelled."""
    return lingered_until_cancelled


@server.tool()
def lingering() -> int:
    """How many calls of `linger` are open."""
    return lingering_now


@server.tool()
async def sprout(context: Context) -> str:
    """Add a tool and say so on the streams of those who listen."""
    global sprouts
    sprouts += 1
    name = f"sprout_{sprouts}"
    server.add_tool(lambda: "grown", name=name, description="It was added.")
    await context.notify_tools_changed()
    return name


@server.resource("memo://hello")
def hello() -> str:
    """A memo."""
    return "a memo for all"


@server.prompt()
def welcome(name: str) -> str:
    """Welcome somebody."""
    return f"Welcome {name}."


server.run(transport="stdio")
