"""Connect once with one client library and say which era came of it.

connect_once.py ours|ours-allowed|mcp|fastmcp stdio|http '["argv", …]' or '"URL"'
    ->  RESULT {"era" | "error", "s", …}
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from typing import Any

LIMIT_S = 60
PROBE_TIMEOUT_S = 5


async def ours(target: list[str] | str, allowed: bool) -> dict[str, Any]:
    from observant_host import Host, HttpServer, StdioServer
    from observant_host.config import HostConfig, HostSettings

    host = Host(config=HostConfig(host=HostSettings(startup_deadline_s=LIMIT_S)))
    launch = HttpServer(target) if isinstance(target, str) else StdioServer(target)
    host.add_server("scripted", launch, allow_legacy=allowed, probe_timeout_s=PROBE_TIMEOUT_S)
    async with host:
        if "slow 12 s" in target:
            # Refused at first, then found modern by its late answer: the end of the story counts.
            async with asyncio.timeout(LIMIT_S):
                await host.wait_for("scripted", "ready")
        view = host.servers["scripted"]
        if view.state == "ready":
            return {"era": view.era, "reason": view.reason}
        return {"error": f"{view.state}: {view.reason}", "cause": view.cause}


def official(library: str, target: list[str] | str) -> Any:
    """The library's own client, an async context manager."""
    if library == "mcp":
        from mcp import Client, StdioServerParameters

        if isinstance(target, str):
            return Client(target)
        return Client(StdioServerParameters(command=target[0], args=target[1:]))
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    if isinstance(target, str):
        return Client(target)
    return Client(StdioTransport(target[0], target[1:], keep_alive=False))


async def theirs(library: str, target: list[str] | str) -> dict[str, Any]:
    async with asyncio.timeout(25), official(library, target) as connected:
        return {"era": "modern" if connected.session.discover_result else "legacy"}


async def main(library: str, target: list[str] | str) -> None:
    began = time.perf_counter()
    try:
        if library.startswith("ours"):
            result = await ours(target, library == "ours-allowed")
        else:
            result = await theirs(library, target)
    except BaseException as error:  # noqa: BLE001 - the error is this program's output
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        result = {"error": f"{type(error).__name__}: {error}"[:110]}
    print("RESULT " + json.dumps({**result, "s": round(time.perf_counter() - began, 2)}))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[3])))
