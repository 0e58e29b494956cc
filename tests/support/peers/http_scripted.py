"""A scripted MCP server over HTTP, as a real process (standard library only).

Run it as `python -I -S http_scripted.py [--option value ...]`; its first line on stdout is its
port, the endpoint is /mcp (HTTP+SSE: /sse). It takes the options and the tools of `scripted` (what
the server is, how it answers, what it offers, --log, --state), and these:

How it speaks HTTP
  --port N                 listen there (0: any); --host H (127.0.0.1)
  --answers json|sse       the form of answers to requests (json)
  --stays-open yes         SSE streams stay open after the response
  --priming yes            each SSE answer begins with an id and empty data (legacy)
  --drop-stream TOOL       this tool's SSE stream ends after its priming event; the answer comes on
                           the GET that goes on with it (legacy)
  --retry MS               said in priming events
  --old-sse yes            HTTP+SSE of 2024-11-05 at /sse, POST /sse gives 405, nothing at /mcp
  --endpoint URL           what the endpoint event says instead of /messages?session=…
  --get STATUS|stream|close|once   how a legacy GET is answered (stream); close: opened and ended;
                           once: the first is ended after 0.4 s, which is when --unseen comes
  --delete STATUS|hang     how DELETE is answered (200)
  --sessions no            no session id (yes: minted at initialize, then required)
  --session-requests N     a session is forgotten after N requests in it
  --unknown-session STATUS how an unknown session is refused (404)
  --lenient-headers yes    modern metadata headers are not checked (else -32020)

Faults: STATUS[:BODY], BODY "html" or text, may be "reset" (connection dropped unanswered)
  --discover-status F · --initialize-status F · --post-status F (everything) · --call-status F
  --fail-first N           only the first N such requests get the fault
  --retry-after V          a header of those faults
  --token T                401 without "Authorization: Bearer T"; --www-authenticate V besides
  --redirect STATUS        /mcp redirects to /moved; --location L: to there

Tools besides those of `scripted`: headers (the request's headers as JSON) · expire (forgets all
sessions) · drop (the connection is dropped) · applied (counts itself, then answers 502) ·
count (how often applied ran) · push {kind} (list_changed on the GET stream) · reset_after_head
Log events besides: request {verb, path, headers}, gone {id} (the client closed a response stream).
"""

import base64
import http.server
import json
import os
import queue
import re
import sys
import threading
import time
import uuid

sys.path.insert(0, os.path.dirname(__file__))  # -I leaves it out

from http_old import OldHttp
from http_responses import Handler, Response
from scripted_server import KEY, Server, options

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def plain(value):
    match = re.fullmatch(r"=\?base64\?(.*)\?=", value or "")
    return base64.b64decode(match[1]).decode() if match else value


class HttpServer(OldHttp, Server):
    """The scripted server, whose messages go to whichever response is theirs."""

    def __init__(self, opt):
        super().__init__(opt)
        self.here = threading.local()
        self.sessions = {}
        self.listeners = []
        self.queues = {}
        self.kept = {}
        self.faults = {}
        self.applied = 0
        self.gets = 0
        self.lock = threading.Lock()

    # routing of what the server says

    def send(self, message):
        response = getattr(self.here, "response", None)
        if response is not None:
            response.message(message)
        elif isinstance(message, dict):
            self.push(message)
        if isinstance(message, dict):
            self.note("out", id=message.get("id"), method=message.get("method"))

    def push(self, message):
        if self.opt.get("old-sse"):
            for mine in tuple(self.sessions.values()):
                mine.put(message)
        for listener in tuple(self.listeners):
            listener.put(message)

    def write(self, data):
        """What `scripted` writes to stdout as noise has no place here."""

    def later(self, seconds, act, *args):
        response = getattr(self.here, "response", None)

        def run():
            self.here.response = response
            act(*args)

        if response is not None and args and isinstance(args[0], dict) and "id" in args[0]:
            time.sleep(seconds)  # the response waits for it
            act(*args)
            return
        timer = threading.Timer(seconds, run)
        timer.daemon = True
        timer.start()

    # tools

    def tool_headers(self, message, arguments):
        return json.dumps({k.lower(): v for k, v in self.here.response.handler.headers.items()})

    def tool_expire(self, message, arguments):
        self.sessions.clear()
        return "expired"

    def tool_drop(self, message, arguments):
        self.here.response.cut()

    def tool_applied(self, message, arguments):
        with self.lock:
            self.applied += 1
        self.here.response.whole(502, "text/html", b"<html><title>Bad gateway</title></html>")

    def tool_count(self, message, arguments):
        return self.applied

    def tool_push(self, message, arguments):
        kind = arguments.get("kind", "tools")
        self.push({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed", "params": {}})
        return "pushed"

    def tool_mute(self, message, arguments):
        self.here.response.wait_gone()

    def tool_close(self, message, arguments):
        self.here.response.cut()

    # one POST

    def post(self, handler, body):
        try:
            message = json.loads(body)
        except ValueError:
            message = {}
        shown = message if len(body) < 4000 else {**message, "params": "(long)"}
        self.note("in", msg=shown)
        method = message.get("method")
        self.received[method] = self.received.get(method, 0) + 1
        response = Response(handler, self, message)
        self.here.response = response
        try:
            if self.refused(handler, response, message) or self.faulty(response, method):
                return
            self.answer(handler, response, message)
        finally:
            self.here.response = None

    def answer(self, handler, response, message):
        method = message.get("method")
        if method is None or "id" not in message:
            response.empty(int(self.opt.get("notification-status", 202)))
            self.here.response = None
            if method is None:
                waiting = self.waiting.get(message.get("id"))
                if waiting:
                    waiting[1] = message
                    waiting[0].set()
            else:
                self.notified(method, message.get("params") or {})
            return
        if method == "initialize" and self.opt.get("sessions") != "no":
            response.session = uuid.uuid4().hex
            self.sessions[response.session] = 0
        if method == "tools/call" and self.opt.get("drop-stream") == message["params"].get("name"):
            response.break_off()
        self.asked_for(message)
        response.finish()

    def refused(self, handler, response, message):
        token = self.opt.get("token")
        if token and handler.headers.get("Authorization") != f"Bearer {token}":
            response.whole(401, "text/plain", b"unauthorized", self.challenge())
            return True
        if self.is_modern(message):
            return self.era != "legacy" and self.bad_headers(handler, response, message)
        if message.get("method") == "initialize" or self.opt.get("sessions") == "no":
            return False
        return self.era != "modern" and self.bad_session(handler, response, message)

    def challenge(self):
        said = self.opt.get("www-authenticate")
        return [("WWW-Authenticate", said)] if said else []

    def bad_headers(self, handler, response, message):
        if self.opt.get("lenient-headers") or "id" not in message:
            return False
        given, method = handler.headers, message["method"]
        meta = message["params"]["_meta"]
        wanted = {"MCP-Protocol-Version": meta[KEY + "protocolVersion"], "Mcp-Method": method}
        if method in NAMED:
            wanted["Mcp-Name"] = message["params"].get(NAMED[method])
        wrong = [name for name, value in wanted.items() if plain(given.get(name)) != value]
        wrong += self.bad_parameters(given, message)
        if given.get("Mcp-Session-Id"):
            wrong.append("Mcp-Session-Id")
        if wrong:
            self.error_status(response, message, 400, -32020, f"Header mismatch: {wrong[0]}")
        return bool(wrong)

    def bad_parameters(self, given, message):
        if message["method"] != "tools/call":
            return []
        name = message["params"].get("name")
        tool = next((tool for tool in self.tools if tool.get("name") == name), {})
        arguments, wrong = message["params"].get("arguments") or {}, []
        for key, schema in (tool.get("inputSchema") or {}).get("properties", {}).items():
            header, value = schema.get("x-mcp-header"), arguments.get(key)
            if header is None:
                continue
            if isinstance(value, bool):
                value = str(value).lower()
            found = plain(given.get(f"Mcp-Param-{header}"))
            if found != (None if value is None else str(value)):
                wrong.append(f"Mcp-Param-{header}")
        return wrong

    def error_status(self, response, message, status, code, text):
        error = {
            "jsonrpc": "2.0",
            "id": message.get("id"),
            "error": {"code": code, "message": text},
        }
        response.whole(status, "application/json", json.dumps(error).encode())

    def bad_session(self, handler, response, message):
        session = handler.headers.get("Mcp-Session-Id")
        limit = int(self.opt.get("session-requests", 0))
        if session in self.sessions:
            self.sessions[session] += 1
            if not limit or self.sessions[session] <= limit:
                return False
            self.sessions.pop(session, None)
        status = int(self.opt.get("unknown-session", 404)) if session else 400
        said = "Session not found" if session else "Bad Request: Mcp-Session-Id header is required"
        self.error_status(response, {"id": None}, status, -32001, said)
        return True

    def faulty(self, response, method):
        for key, methods in FAULTS.items():
            if key in self.opt and (methods is None or method in methods):
                self.faults[key] = self.faults.get(key, 0) + 1
                if self.faults[key] > int(self.opt.get("fail-first", 1 << 30)):
                    continue
                response.fault(self.opt[key])
                return True
        return False

    # GET and DELETE

    def get(self, handler):
        response = Response(handler, self, {})
        if self.opt.get("old-sse"):
            self.old_stream(handler, response)
            return
        how = self.opt.get("get", "stream")
        last = handler.headers.get("Last-Event-ID")
        if last in self.kept:
            response.start_stream()
            while self.kept[last] is None:
                time.sleep(0.01)  # the tool is still at work
            response.event(self.kept.pop(last), last + "-answer")
            response.end()
        elif self.era == "modern" or how.isdigit():
            response.empty(int(how) if how.isdigit() else 405)
        else:
            response.start_stream()
            if how == "close":
                response.end()
            elif how == "once" and not self.gets:
                self.gets += 1
                time.sleep(0.4)
                response.cut()
                self.add_unseen()
            else:
                self.listen(response)

    def send_in_stream(self, id_, message):
        self.queues[id_].put(message)

    def stream(self, message, how, argument):
        response, id_, mine = self.here.response, message["id"], queue.Queue()
        self.queues[id_] = mine
        response.start_stream()
        super().stream(message, how, argument)
        said = {}
        try:
            while said is not None and "result" not in said:
                try:
                    said = mine.get(timeout=0.2)
                except queue.Empty:
                    if self.opt.get("comments") != "no":
                        response.chunk(b": alive\n\n")
                else:
                    if said is None:
                        response.cut()
                    else:
                        response.event(said)
        finally:
            if self.queues.get(id_) is mine:
                self.streams.pop(id_, None)

    def listen(self, response):
        mine = queue.Queue()
        self.listeners.append(mine)
        try:
            while True:
                try:
                    response.event(mine.get(timeout=0.5))
                except queue.Empty:
                    response.chunk(b": alive\n\n")
        finally:
            self.listeners.remove(mine)

    def delete(self, handler):
        how = self.opt.get("delete", "200")
        response = Response(handler, self, {})
        if how == "hang":
            response.wait_gone()
            return
        known = self.sessions.pop(handler.headers.get("Mcp-Session-Id"), None) is not None
        response.empty(int(how) if known or how != "200" else 404)


FAULTS = {
    "discover-status": {"server/discover"},
    "initialize-status": {"initialize"},
    "call-status": {"tools/call"},
    "post-status": None,
}


class Listening(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        pass


def main():
    opt = options(sys.argv[1:])
    brain = HttpServer(opt)
    server = Listening((opt.get("host", "127.0.0.1"), int(opt.get("port", 0))), Handler)
    server.brain = brain
    brain.note("start", argv=sys.argv[1:])
    life = threading.Timer(float(opt.get("max-life", 120)), os._exit, (99,))
    life.daemon = True
    life.start()
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
