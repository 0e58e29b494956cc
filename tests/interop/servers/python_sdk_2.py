"""A server on the official Python SDK 2.x: both eras, as its users get it.

python python_sdk_2.py [stdio | http PORT]
"""

import sys

from mcp.server.mcpserver import Context, MCPServer

TRANSPORT, PORT = [*sys.argv[1:], "stdio", "0"][:2]
server = MCPServer("python-sdk-2", version="1.0.0")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def grow(context: Context) -> str:
    """Add a tool and say so on the streams of those who listen."""
    server.add_tool(lambda: "grown", name="grown", description="It was added.")
    await context.notify_tools_changed()
    return "added"


@server.resource("note://hello")
def hello() -> str:
    """A greeting."""
    return "hello"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


if TRANSPORT == "stdio":
    server.run(transport="stdio")
else:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(PORT))
