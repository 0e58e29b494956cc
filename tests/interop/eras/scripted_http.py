"""An HTTP server that answers server/discover in one chosen way and logs the methods it is sent.

Prints its port as the first line. It also answers `initialize`, well, always.

  --case "STATUS" | "STATUS CODE" | "reset" | "slow 12 s" | "ok"    --log FILE
"""

import asyncio
import json
import sys
from pathlib import Path

CASE = sys.argv[sys.argv.index("--case") + 1]
LOG = Path(sys.argv[sys.argv.index("--log") + 1]).open("a", buffering=1)  # noqa: SIM115 - to the end
OK = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
}
INIT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
}
NO_TOOLS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": []}


class Reset(Exception):
    """Close the connection without a word."""


async def discovered():
    """(status, members of the answer or None for no body)."""
    if CASE == "reset":
        raise Reset
    if CASE in ("ok", "slow 12 s"):
        await asyncio.sleep(12 if CASE.startswith("slow") else 0)
        return 200, {"result": OK}
    status, *code = CASE.split()
    return int(status), {"error": {"code": int(code[0]), "message": "scripted"}} if code else None


async def answer(verb, message):
    method = message.get("method")
    if verb != "POST":
        return 405, None
    if method == "server/discover":
        return await discovered()
    if message.get("id") is None:
        return 202, None
    return 200, {"result": {"initialize": INIT, "tools/list": NO_TOOLS}.get(method, {})}


async def request(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    body = await reader.readexactly(lengths[0] if lengths else 0)
    return head.split(b" ")[0].decode(), json.loads(body) if body else {}


async def serve(reader, writer):
    try:
        while True:
            verb, message = await request(reader)
            LOG.write((message.get("method") or verb) + "\n")
            status, members = await answer(verb, message)
            whole = {"jsonrpc": "2.0", "id": message.get("id"), **(members or {})}
            data = json.dumps(whole).encode() if members else b""
            kind = b"content-type: application/json\r\n" if data else b""
            length = b"content-length: %d\r\n\r\n" % len(data)
            writer.write(b"HTTP/1.1 %d X\r\n" % status + kind + length + data)
            await writer.drain()
    except Reset:
        writer.transport.abort()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
