"""This library's host, as a plain user holds it: metrics on, nothing kept on disk unless
`STATE_DIR` is in the environment.

ours.py COUNT COMMAND...
"""

import asyncio
import os
import sys

from meter import Meter

from observant_host import Host, StdioServer

COUNT, COMMAND = int(sys.argv[1]), sys.argv[2:]


async def main():
    meter = Meter()
    meter.begin()
    host = Host(startup_deadline_s=300.0, state_dir=os.environ.get("STATE_DIR"))
    for number in range(COUNT):
        host.add_server(f"s{number:03}", StdioServer(COMMAND))
    async with host:
        meter.ready(tools=len(host.catalogue.tools))


if __name__ == "__main__":
    asyncio.run(main())
