"""A server on fastmcp: both eras."""

from fastmcp import FastMCP

server = FastMCP("fastmcp-4", version="1.0.0")


@server.tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


server.run(transport="stdio", show_banner=False)
