"""A server on the official Python SDK 2.x: both eras, as its users get it."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("python-sdk-2", version="1.0.0")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.resource("note://hello")
def hello() -> str:
    """A greeting."""
    return "hello"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


server.run(transport="stdio")
