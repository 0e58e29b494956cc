"""A server on the official Python SDK 1.x: legacy only, as many of its users still run it."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("python-sdk-1")


@server.tool()
def subtract(a: int, b: int) -> int:
    """Subtract one number from another."""
    return a - b


server.run(transport="stdio")
