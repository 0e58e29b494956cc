"""The client of the official SDK, or fastmcp's, as their documentation shows it; untraced.

{"library": "mcp" | "fastmcp", "transport": …, "target": …, "at": {…}}
"""

from __future__ import annotations

import asyncio
from typing import Any

from driving import driven, result, task


def client(given: dict[str, Any]) -> Any:
    target = given["target"]
    if given["library"] == "mcp":
        from mcp import Client, StdioServerParameters

        if given["transport"] == "http":
            return Client(target)
        return Client(StdioServerParameters(command=target[0], args=target[1:]))
    from fastmcp import Client as FastClient
    from fastmcp.client.transports import StdioTransport

    if given["transport"] == "http":
        return FastClient(target)
    return FastClient(StdioTransport(command=target[0], args=target[1:], keep_alive=False))


async def main() -> None:
    given = task()
    async with client(given) as connected:
        await connected.list_tools()

        async def call(number: int) -> None:
            answer = await connected.call_tool("t0", {"text": "hello", "n": number})
            assert answer.content

        result(await driven(given, call))


if __name__ == "__main__":
    asyncio.run(main())
