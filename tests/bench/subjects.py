"""What the gateway is measured against, each a process of its own that prints its URL.

python -m tests.bench.subjects raw       answers from a bare asyncio protocol: the load's own floor
python -m tests.bench.subjects static    an aiohttp handler that returns constant bytes
python subjects.py fastmcp -- COMMAND…   fastmcp's proxy before a stdio server, by its own venv
"""

from __future__ import annotations

import asyncio
import sys

RESULT = (
    b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",'
    b'"content":[{"type":"text","text":"xxxxxxxxxxxxxxxx"}]}}'
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class Raw(asyncio.Protocol):
    """For whole requests that come one by one, as those of `load` do."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer = HEAD % len(RESULT) + RESULT

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(self._answer)


async def raw() -> None:
    server = await asyncio.get_running_loop().create_server(Raw, "127.0.0.1", 0)
    _say(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def static() -> None:
    from aiohttp import web

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=RESULT, content_type="application/json")

    app = web.Application()
    app.router.add_post("/mcp", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    _say(runner.addresses[0][1])
    await asyncio.Event().wait()


def fastmcp(command: list[str]) -> None:
    import logging
    import socket

    logging.disable(logging.CRITICAL)
    from fastmcp.server import create_proxy  # type: ignore[import-not-found]  # of another venv

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    servers = {"p0": {"command": command[0], "args": command[1:]}}
    proxy = create_proxy({"mcpServers": servers})
    _say(port)
    proxy.run(
        transport="http",
        host="127.0.0.1",
        port=port,
        stateless_http=True,
        json_response=True,
        show_banner=False,
        uvicorn_config={"access_log": False, "log_level": "error"},
    )


def _say(port: int) -> None:
    print(f"http://127.0.0.1:{port}/mcp", flush=True)


if __name__ == "__main__":
    what = sys.argv[1]
    if what == "fastmcp":
        fastmcp(sys.argv[3:])
    else:
        asyncio.run({"raw": raw, "static": static}[what]())
