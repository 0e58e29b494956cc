"""How `http_scripted` writes HTTP: whole answers, streams, and responses that break off."""

import contextlib
import http.server
import json
import socket
import threading
import time
import uuid

KEPT = ("authorization", "accept", "content-type", "last-event-id", "mcp-session-id")


class OldResponse:
    """Messages of HTTP+SSE go to the stream."""

    def __init__(self, mine, handler):
        self.mine = mine
        self.handler = handler

    def message(self, message):
        self.mine.put(message)

    def cut(self):
        self.mine.put(None)

    def whole(self, status, content_type, body, headers=()):
        """The POST was answered already."""

    def wait_gone(self):
        """Never answered."""


class Response:
    """One HTTP response, in the form that the options and the message ask for."""

    def __init__(self, handler, server, message):
        self.handler = handler
        self.server = server
        self.asked = message
        self.session = None
        self.streaming = False
        self.done = False
        self.broken = None
        self.lock = threading.Lock()

    def message(self, message):
        """A whole answer, or one event of a stream; notes before a JSON answer are dropped."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        if self.broken is not None:
            self.server.kept[self.broken] = data
            return
        is_note = isinstance(message, dict) and "method" in message
        if self.server.opt.get("answers") == "sse" or is_note:
            self.start_stream()
        if self.streaming:
            self.event(data)
        elif not self.done:
            self.whole(200, "application/json", data)

    def start_stream(self):
        if self.streaming:
            return
        self.streaming = True
        self.head(200, "text/event-stream", [("Transfer-Encoding", "chunked")])
        if self.server.opt.get("priming") and self.asked:
            self.prime()

    def prime(self):
        key = uuid.uuid4().hex
        retry = self.server.opt.get("retry")
        self.chunk(f"id: {key}\n{f'retry: {retry}' + chr(10) if retry else ''}data:\n\n".encode())
        return key

    def break_off(self):
        self.streaming = True
        self.head(200, "text/event-stream", [("Transfer-Encoding", "chunked")])
        self.broken = self.prime()
        self.server.kept[self.broken] = None
        self.end()

    def event(self, message, key=None):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        head = f"id: {key}\n".encode() if key else b""
        self.chunk(head + b"event: message\ndata: " + data + b"\n\n")

    def finish(self):
        """After the message was handled: the stream's end, or nothing where it was all said."""
        if self.broken is not None or (self.done and not self.streaming):
            return
        if not self.streaming:
            self.wait_gone()  # the case was "silent"
            return
        while self.server.opt.get("stays-open"):
            self.chunk(b": still here\n\n")
            time.sleep(0.2)
        self.end()

    def fault(self, fault):
        status, _, body = fault.partition(":")
        if status == "reset":
            self.cut()
            return
        said = self.server.opt.get("retry-after")
        headers = [("Retry-After", said)] if said else []
        if status == "401":
            headers += self.server.challenge()
        page = b"<html><head><title>Gateway says no</title></head><body>no</body></html>"
        html = body == "html"
        is_json = body.startswith("{")
        kind = "text/html" if html else "application/json" if is_json else "text/plain"
        content = page if html else body.replace("$ID", json.dumps(self.asked.get("id"))).encode()
        self.whole(int(status), kind if content else "", content, headers)

    # bytes

    def head(self, status, content_type="", headers=()):
        self.done = True
        handler = self.handler
        handler.send_response(status)
        if content_type:
            handler.send_header("Content-Type", content_type)
        if self.session:
            handler.send_header("Mcp-Session-Id", self.session)
        for name, value in headers:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.flush()

    def whole(self, status, content_type, body, headers=()):
        self.head(status, content_type, [("Content-Length", str(len(body))), *headers])
        self.handler.wfile.write(body)
        self.handler.wfile.flush()

    def empty(self, status):
        self.whole(status, "", b"") if status != 204 else self.head(204)

    def chunk(self, data):
        with self.lock:
            self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.handler.wfile.flush()

    def end(self):
        with self.lock:
            self.handler.wfile.write(b"0\r\n\r\n")
            self.handler.wfile.flush()

    def cut(self):
        self.done = True
        self.handler.close_connection = True
        with contextlib.suppress(OSError):
            self.handler.connection.shutdown(socket.SHUT_RDWR)

    def wait_gone(self):
        """Say nothing until the client has gone."""
        self.done = True
        self.handler.close_connection = True
        try:
            self.handler.connection.settimeout(None)
            self.handler.rfile.read(1)
        except OSError:
            pass
        self.server.note("gone", id=self.asked.get("id"), method=self.asked.get("method"))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.act(lambda: self.posted(body))

    def do_GET(self):
        self.act(lambda: self.brain.get(self))

    def do_DELETE(self):
        self.act(lambda: self.brain.delete(self))

    @property
    def brain(self):
        return self.server.brain

    def act(self, do):
        kept = {
            name.lower(): value
            for name, value in self.headers.items()
            if name.lower() in KEPT or name.lower().startswith("mcp-")
        }
        self.brain.note("request", verb=self.command, path=self.path, headers=kept)
        try:
            do()
        except OSError:
            self.close_connection = True
            self.brain.note("gone", id=None)

    def posted(self, body):
        brain = self.brain
        if brain.opt.get("old-sse"):
            brain.old_post(self, body)
            return
        if self.path == "/mcp" and "redirect" in brain.opt:
            response = Response(self, brain, {})
            where = brain.opt.get("location", "/moved")
            response.whole(int(brain.opt["redirect"]), "", b"", [("Location", where)])
            return
        if self.path not in ("/mcp", "/moved"):
            Response(self, brain, {}).empty(404)
            return
        brain.post(self, body)
