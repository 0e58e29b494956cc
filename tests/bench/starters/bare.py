"""The floor: a loop that starts every server at once, asks each what it is and what it lists.

bare.py COUNT COMMAND...
"""

import asyncio
import json
import sys

from meter import Meter

COUNT, COMMAND = int(sys.argv[1]), sys.argv[2:]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bare", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Server(asyncio.SubprocessProtocol):
    def __init__(self):
        self.rest, self.waiting, self.last = b"", {}, 0

    def pipe_data_received(self, fd, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.waiting.pop(message["id"]).set_result(message["result"])

    async def ask(self, method):
        self.last += 1
        answer = self.waiting[self.last] = asyncio.get_running_loop().create_future()
        asked = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": {"_meta": META}}
        self.pipe.write(json.dumps(asked).encode() + b"\n")
        return await answer


async def start():
    loop = asyncio.get_running_loop()
    transport, server = await loop.subprocess_exec(Server, *COMMAND, stderr=None)
    server.pipe = transport.get_pipe_transport(0)
    await server.ask("server/discover")
    return transport, (await server.ask("tools/list"))["tools"]


async def main():
    meter = Meter()
    meter.begin()
    started = await asyncio.gather(*(start() for _ in range(COUNT)))
    meter.ready(tools=sum(len(tools) for _, tools in started))
    for transport, _ in started:
        transport.close()


asyncio.run(main())
