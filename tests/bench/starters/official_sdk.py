"""The official SDK's client, one for each server. For an interpreter that has `mcp`.

official_sdk.py COUNT COMMAND...
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from meter import Meter

COUNT, COMMAND = int(sys.argv[1]), sys.argv[2:]


async def hold(ready, stop):
    """A whole life in one task, which its cancel scopes need."""
    async with Client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])) as client:
        ready.set_result(len((await client.list_tools()).tools))
        await stop.wait()


async def main():
    meter, stop, loop = Meter(), asyncio.Event(), asyncio.get_running_loop()
    meter.begin()
    ready = [loop.create_future() for _ in range(COUNT)]
    tasks = [asyncio.create_task(hold(one, stop)) for one in ready]
    tools = sum(await asyncio.gather(*ready))
    meter.ready(tools=tools)
    stop.set()
    await asyncio.gather(*tasks)


asyncio.run(main())
