"""A server on fastmcp: both eras.

python fastmcp_4.py [stdio | http PORT]
"""

import sys

from fastmcp import Context, FastMCP

TRANSPORT, PORT = [*sys.argv[1:], "stdio", "0"][:2]
server = FastMCP("fastmcp-4", version="1.0.0")


@server.tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


@server.tool
async def count(context: Context) -> str:
    """Count to three, telling of each."""
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    return "counted"


@server.resource("note://hello")
def hello() -> str:
    """A greeting."""
    return "hello"


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note by name."""
    return f"note of {name}"


@server.prompt
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


address = {} if TRANSPORT == "stdio" else {"host": "127.0.0.1", "port": int(PORT)}
server.run(transport=TRANSPORT, show_banner=False, **address)
