"""A small MCP server of revision 2026-07-28 behind a URL, standard library only.

    python http_server.py NAME [--port N | --socket FD] [--token FILE] [--log FILE]

It answers POST /mcp on 127.0.0.1 until its stdin ends. `--socket`: a listening socket that it
inherits, so that whoever starts it knows its port from the beginning. `--token`: only requests with
`Authorization: Bearer` and what is in FILE at that moment are answered. `--log`: every method it
receives, one a line. A tool call is answered as an event stream, everything else as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Reply = dict[str, Any]
Refusal = tuple[int, int, str, object]
"""HTTP status, JSON-RPC code, message, data."""

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
MAX_BODY_BYTES = 1024 * 1024

TIMETABLE = {
    "name": "timetable",
    "description": "The next ferry from one harbour.",
    "inputSchema": {
        "type": "object",
        "properties": {"harbour": {"type": "string", "x-mcp-header": "Harbour"}},
        "required": ["harbour"],
    },
}


def answer(name: str, message: Reply, headers: Reply) -> Reply | Refusal:
    method, params = message["method"], message.get("params", {})
    asked = params.get("_meta", {}).get(META + "protocolVersion")
    if asked != REVISION:
        data = {"supported": [REVISION], "requested": asked}
        return 400, -32022, "unsupported protocol version", data
    wrong = mismatch(method, params, headers)
    if wrong:
        return 400, -32020, wrong, None
    complete = {"resultType": "complete", "_meta": {META + "serverInfo": identity(name)}}
    cached = {"ttlMs": 60_000, "cacheScope": "public"}
    match method:
        case "server/discover":
            offered: Reply = {"supportedVersions": [REVISION], "capabilities": {"tools": {}}}
            return {**offered, **cached, **complete}
        case "tools/list":
            return {"tools": [TIMETABLE], **cached, **complete}
        case "tools/call" if params.get("name") == "timetable":
            harbour = params.get("arguments", {}).get("harbour")
            if not isinstance(harbour, str):
                return 200, -32602, "the argument `harbour` must be a string", None
            seen = [f"{key}: {headers[key]}" for key in headers if key.startswith("Mcp-")]
            text = f"{name}.timetable(harbour={harbour!r}) by {'; '.join(seen)}"
            return {"content": [{"type": "text", "text": text}], "isError": False, **complete}
        case "tools/call":
            return 200, -32602, f"no tool {params.get('name')!r}", None
        case _:
            return 404, -32601, f"no method {method!r}", None


def identity(name: str) -> Reply:
    return {"name": name, "version": "3.1.0"}


def mismatch(method: str, params: Reply, headers: Reply) -> str:
    """What a header says otherwise than the body; empty if they agree."""
    expected: Reply = {"MCP-Protocol-Version": REVISION, "Mcp-Method": method}
    if method == "tools/call":
        expected["Mcp-Name"] = params.get("name")
        expected["Mcp-Param-Harbour"] = params.get("arguments", {}).get("harbour")
    for header, value in expected.items():
        if plain(headers.get(header)) != (None if value is None else str(value)):
            return f"the header {header} does not say what the body says"
    return ""


def plain(value: str | None) -> str | None:
    """A header's value, decoded where it is written as base64."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return b64decode(value[9:-2]).decode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    name = ""
    token: Path | None = None
    log: Path | None = None

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), MAX_BODY_BYTES))
        if "Origin" in self.headers:  # a page in a browser, led here under a name of its own
            self.reply(403, b"", "text/plain")
            return
        if self.token and self.headers.get("Authorization") != f"Bearer {self.token.read_text()}":
            self.note("401")
            self.reply(401, b"", "text/plain", ("WWW-Authenticate", "Bearer"))
            return
        message = json.loads(body)
        self.note(message["method"])
        if "id" not in message:
            self.reply(202, b"", "text/plain")
            return
        self.answer(message, answer(self.name, message, dict(self.headers.items())))

    def do_GET(self) -> None:
        self.note("GET")
        self.reply(405, b"", "text/plain", ("Allow", "POST"))

    do_DELETE = do_GET  # noqa: N815 - the base class's name

    def answer(self, message: Reply, said: Reply | Refusal) -> None:
        frame: Reply = {"jsonrpc": "2.0", "id": message["id"]}
        if isinstance(said, tuple):
            status, code, text, data = said
            frame["error"] = {"code": code, "message": text, **({"data": data} if data else {})}
            self.reply(status, json.dumps(frame).encode(), "application/json")
            return
        frame["result"] = said
        body = json.dumps(frame).encode()
        if message["method"] == "tools/call":
            self.reply(200, b"event: message\ndata: " + body + b"\n\n", "text/event-stream")
        else:
            self.reply(200, body, "application/json")

    def reply(self, status: int, body: bytes, kind: str, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for header, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *headers):
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def note(self, what: str) -> None:
        if self.log:
            with self.log.open("a") as log:
                log.write(f"{what}\n")

    def log_message(self, *_: object) -> None:
        """Nothing: stderr is a person's terminal."""


class Server(ThreadingHTTPServer):
    daemon_threads = True  # an idle connection keeps nobody


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("name")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--socket", type=int)
    options.add_argument("--token", type=Path)
    options.add_argument("--log", type=Path)
    given = options.parse_args()
    Handler.name, Handler.token, Handler.log = given.name, given.token, given.log
    if given.socket is None:
        server = Server(("127.0.0.1", given.port), Handler)
        print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    else:
        server = Server(("127.0.0.1", 0), Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = socket.socket(fileno=given.socket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while os.read(sys.stdin.fileno(), 4096):
        pass


if __name__ == "__main__":
    main()
