"""The smallest MCP server over Streamable HTTP: JSON answers from a bare protocol, so that a
client's own cost is what shows. On uvloop where it is installed. Prints its port first.

python http_server.py [SIZE]     SIZE: bytes of text in a tool's result
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys

with contextlib.suppress(ImportError):
    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 16
TOOLS = 10
FRESH = {"resultType": "complete", "ttlMs": 600_000, "cacheScope": "private"}
PROPERTIES = {"text": {"type": "string"}, "n": {"type": "integer"}}
RESULTS = {
    "server/discover": {
        **FRESH,
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "1"}},
    },
    "tools/list": {
        **FRESH,
        "tools": [
            {"name": f"t{n}", "inputSchema": {"type": "object", "properties": PROPERTIES}}
            for n in range(TOOLS)
        ],
    },
    "tools/call": {
        "resultType": "complete",
        "content": [{"type": "text", "text": "x" * SIZE}],
    },
}
BODIES = {method: json.dumps(result).encode() for method, result in RESULTS.items()}
REFUSED = b'{"code":-32601,"message":"Method not found"}'
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"


def response(request: bytes) -> bytes:
    asked = json.loads(request) if request else {}
    if "id" not in asked:
        return ACCEPTED
    body = BODIES.get(asked["method"])
    name, value = (b"error", REFUSED) if body is None else (b"result", body)
    ident = json.dumps(asked["id"]).encode()
    answer = b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (ident, name, value)
    return OK % len(answer) + answer


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._unread = b""

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while (request := self._whole_request()) is not None:
            self._transport.write(response(request))

    def _whole_request(self) -> bytes | None:
        """The body of the next request that has come in whole."""
        head, found, rest = self._unread.partition(b"\r\n\r\n")
        if not found:
            return None
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        if len(rest) < length:
            return None
        self._unread = rest[length:]
        return rest[:length]


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
