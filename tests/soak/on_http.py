"""The HTTP side of the server beside it."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from server import acknowledged, changed, line_of

if TYPE_CHECKING:
    from server import Server

    Json = dict[str, Any]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "soak"
    peer: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = message["method"] == "tools/call"
        if message["method"] == "subscriptions/listen":
            self._listen(message)
            return
        if call and self.peer.misbehaves("slow", 0.1):
            time.sleep(self.peer.seconds(0.1, 1.5))
        if call and self.peer.misbehaves("refusing", 0.1):
            self._refuse()
            return
        reply = self.peer.answer(message)
        body = b"" if reply is None else json.dumps(reply).encode()
        if call and self.peer.misbehaves("lost", 0.03):
            self._cut(b"")
        elif call and self.peer.misbehaves("cut", 0.03):
            self._cut(_response(200, body)[:-5])
        elif call and self.peer.misbehaves("flap", 0.03):
            self.wfile.write(_response(500, b'{"error":"after the fact"}'))
        else:
            self.wfile.write(_response(202 if reply is None else 200, body))

    def do_GET(self) -> None:
        self.wfile.write(_response(405, b""))

    def _refuse(self) -> None:
        busy = b"HTTP/1.1 429 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
        down = _response(503, b"")
        self.wfile.write(busy if self.peer.seconds(0, 1) < 0.5 else down)

    def _cut(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
        self.close_connection = True

    def _listen(self, message: Json) -> None:
        if self.peer.misbehaves("refusing", 0.3):
            self._refuse()
            return
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        self.wfile.write(b"data: " + line_of(acknowledged(message)) + b"\n")
        self.close_connection = True
        told = b"data: " + line_of(changed(message["id"])) + b"\n"
        while True:
            time.sleep(0.5)
            if self.peer.misbehaves("cut", 0.1):
                self._cut(told[:-5])
                return
            flood = self.peer.misbehaves("flood", 0.2)
            try:
                self.wfile.write(told * 20 if flood else b": still here\n\n")
            except OSError:
                return


def _response(status: int, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status} So\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        pass  # clients come and go


def on_http(server: Server, port: int) -> None:
    Handler.peer = server
    listener = Listener(("127.0.0.1", port), Handler)
    threading.stack_size(256 * 1024)
    print(listener.server_address[1], flush=True)
    listener.serve_forever(poll_interval=5)
