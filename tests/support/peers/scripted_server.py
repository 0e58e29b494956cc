"""What `scripted` does. A module of its own: it is compiled once and not at each start."""

import json
import os
import signal
import sys
import threading
import time

from scripted_streams import KEY, STREAMED, Streams
from scripted_tools import Tools, names

MODERN = "2026-07-28"
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
REPEATABLE = {"tool-json"}
ASKING = ("prompts/get", "resources/read")


def options(argv):
    found = {name: [] for name in REPEATABLE}
    for name, value in zip(argv[::2], argv[1::2], strict=True):
        key = name.removeprefix("--")
        if key in REPEATABLE:
            found[key].append(value)
        else:
            found[key] = value
    return found


class Server(Streams, Tools):
    def __init__(self, opt):
        self.opt = opt
        self.era = opt.get("era", "dual")
        self.write_lock = threading.Lock()
        self.log_lock = threading.Lock()
        self.log_file = open(opt["log"], "a", buffering=1) if "log" in opt else None
        self.discovers = 0
        self.hushed = False
        self.received = {}
        self.held = []
        self.legacy_session = False
        self.waiting = {}
        self.next_request = 0
        self.asked = set()
        self.cancelled = set()
        self.streams = {}
        self.listens = 0
        self.tools = [self.tool(name) for name in names(opt.get("tools", "echo"))]
        self.tools += [json.loads(text) for text in opt["tool-json"]]
        self.tools += [self.tool(f"t{i:04}") for i in range(int(opt.get("many", 0)))]

    # recording and writing

    def note(self, event, **fields):
        if self.log_file:
            line = json.dumps({"t": time.time(), "pid": os.getpid(), "ev": event, **fields})
            with self.log_lock:
                self.log_file.write(line + "\n")

    def write(self, data):
        with self.write_lock:
            view = memoryview(data)
            step = 1 if self.opt.get("split") else len(view)
            try:
                while view:
                    view = view[os.write(1, view[:step]) :]
            except OSError:
                pass

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        if self.opt.get("noise"):
            data = b"[log] handling a request\n" + data
        self.write(data + (b"\r\n" if self.opt.get("crlf") else b"\n"))
        if isinstance(message, dict):
            self.note("out", id=message.get("id"), method=message.get("method"))

    def notify(self, method, params=None):
        if method in STREAMED and not self.legacy_session:
            self.tell_streams(method, params or {})
        else:
            self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def request(self, method, params, timeout=30):
        self.next_request += 1
        key = f"server-{self.next_request}"
        arrived = threading.Event()
        self.waiting[key] = [arrived, None]
        self.send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        arrived.wait(timeout)
        return self.waiting.pop(key)[1]

    def later(self, seconds, act, *args):
        timer = threading.Timer(seconds, act, args)
        timer.daemon = True
        timer.start()

    def exit(self, status):
        self.note("exit", status=status)
        os._exit(status)

    # life

    def run(self):
        opt = self.opt
        self.note("start", argv=sys.argv[1:])
        self.later(float(opt.get("max-life", 60)), os._exit, 99)
        if opt.get("ignore-term"):
            signal.signal(signal.SIGTERM, lambda *_: self.note("term"))
        if "stderr" in opt:
            os.write(2, opt["stderr"].encode() + b"\n")
        for _ in range(int(opt.get("stderr-flood", 0)) // 100):
            os.write(2, b"x" * 99 + b"\n")
        if "exit-at-start" in opt:
            self.exit(int(opt["exit-at-start"]))
        start = self.count_start()
        if start > 1:
            self.add_unseen()
        if start <= int(opt.get("exit-first", 0)):
            os.write(2, b"not yet\n")
            self.exit(1)
        if "start-delay" in opt:
            os.write(2, b"downloading packages\n")
            time.sleep(float(opt["start-delay"]))
        if "banner" in opt:
            self.write(opt["banner"].encode() + b"\n")
        if opt.get("ping-at-start"):
            threading.Thread(target=self.request, args=("ping", {}), daemon=True).start()
        with os.fdopen(0, "rb", 65536) as source:
            for line in source:
                self.line(line)
        self.note("eof")
        while opt.get("ignore-eof"):
            time.sleep(0.1)

    def count_start(self):
        if "state" not in self.opt:
            return 1
        try:
            with open(self.opt["state"]) as file:
                count = int(file.read() or 0) + 1
        except FileNotFoundError:
            count = 1
        with open(self.opt["state"], "w") as file:
            file.write(str(count))
        return count

    def line(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            self.note("bad_input", head=repr(line[:80]))
            return
        self.note("in", msg=message if len(line) < 4000 else {**message, "params": "(long)"})
        if self.hushed:
            return
        method = message.get("method")
        self.received[method] = self.received.get(method, 0) + 1
        self.answer_held(method)
        if method is None:
            waiting = self.waiting.get(message.get("id"))
            if waiting:
                waiting[1] = message
                waiting[0].set()
        elif "id" not in message:
            self.notified(method, message.get("params") or {})
        elif method == "tools/call" and (message.get("params") or {}).get("name") == "stall":
            self.text(message, "stalled")
            time.sleep(3600)
        elif method == "tools/call" and (message.get("params") or {}).get("name") == "busy":
            time.sleep(float(message["params"]["arguments"].get("s", 1)))
            self.text(message, "done")
        elif method in ("tools/call", "prompts/get", "resources/read"):
            threading.Thread(target=self.asked_for, args=(message,), daemon=True).start()
        else:
            self.asked_for(message)

    def answer_held(self, method):
        for one in [one for one in self.held if one[0] == method]:
            self.held.remove(one)
            self.result(*one[1:])

    def asks_first(self, message):
        """A prompt or resource with "ask" in its name wants input, once (modern)."""
        params = message.get("params") or {}
        name = params.get("name") or params.get("uri") or ""
        return message["method"] in ASKING and "ask" in name and "inputResponses" not in params

    # protocol

    def notified(self, method, params):
        if self.opt.get("bad-notification-replies"):
            error = {"code": -32601, "message": "no such notification"}
            self.send({"jsonrpc": "2.0", "id": None, "error": error})
        if method == "notifications/cancelled":
            self.cancelled.add(params.get("requestId"))
            self.streams.pop(params.get("requestId"), None)
        if method == "notifications/initialized":
            for wanted in names(self.opt.get("ask-at-initialized")):
                threading.Thread(target=self.request, args=(wanted, {}), daemon=True).start()

    def is_modern(self, message):
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        return isinstance(meta, dict) and KEY + "protocolVersion" in meta

    def result(self, message, result):
        if self.is_modern(message) and isinstance(result, dict):
            result = {"resultType": "complete", **result}
            if message["method"].endswith(("/list", "/discover", "/read")):
                hint = {"ttlMs": int(self.opt.get("ttl", 0))}
                result = {**hint, "cacheScope": self.opt.get("scope", "private"), **result}
        self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def error(self, message, code, text, data=None):
        error = {"code": code, "message": text}
        if data is not None:
            error["data"] = data
        self.send({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def asked_for(self, message):
        method = message["method"]
        if method == "server/discover":
            self.discovers += 1
            case = self.opt.get("discover", "unknown" if self.era == "legacy" else "ok")
            if self.discovers > 1:
                case = self.opt.get("discover-then", case)
            self.play(case, message, self.discover_result())
        elif method == "initialize":
            case = self.opt.get("initialize", "unknown" if self.era == "modern" else "ok")
            self.legacy_session = True
            self.play(case, message, self.initialize_result(message))
        elif method == "ping":
            self.result(message, {})
        elif self.era == "legacy" and self.is_modern(message) and not self.opt.get("lenient"):
            self.error(message, -32601, "Method not found")
        elif method.endswith("/list"):
            time.sleep(float(self.opt.get("list-sleep", 0)))
            self.play(self.opt.get("list", "ok"), message, self.page(method, message))
        elif method == "tools/call":
            self.call(message)
        elif self.asks_first(message):
            self.ask(message, {})
        elif method == "prompts/get":
            text = {"type": "text", "text": json.dumps(message["params"].get("arguments"))}
            self.result(message, {"messages": [{"role": "user", "content": text}]})
        elif method == "resources/read":
            uri = message["params"].get("uri")
            self.result(message, {"contents": [{"uri": uri, "text": f"content of {uri}"}]})
        elif method == "completion/complete":
            self.result(message, {"completion": {"values": ["one", "two"]}})
        elif method == "resources/subscribe":
            self.play(self.opt.get("subscribe", "ok"), message, {})
        elif method in ("logging/setLevel", "resources/unsubscribe"):
            self.result(message, {})
        elif method == "subscriptions/listen":
            self.listen_to(message)
        elif method.startswith("tasks/"):
            self.task_method(message)
        else:
            self.error(message, -32601, "Method not found")

    def capabilities(self):
        if "capabilities" in self.opt:
            return json.loads(self.opt["capabilities"])
        found = {"tools": {"listChanged": True}} if self.tools else {}
        if self.opt.get("prompts"):
            found["prompts"] = {"listChanged": True}
        if self.opt.get("resources") or self.opt.get("templates"):
            found["resources"] = {"listChanged": True, "subscribe": True}
        if found.keys() & {"prompts", "resources"}:
            found["completions"] = {}
        return found

    def identity(self):
        return {
            "name": self.opt.get("name", "scripted"),
            "version": self.opt.get("server-version", "1"),
        }

    def discover_result(self):
        default = [MODERN, *LEGACY] if self.era == "dual" else [MODERN]
        found = {
            "supportedVersions": names(self.opt.get("versions")) or default,
            "capabilities": self.capabilities(),
            "_meta": {KEY + "serverInfo": self.identity()},
        }
        if "instructions" in self.opt:
            found["instructions"] = self.opt["instructions"]
        return found

    def initialize_result(self, message):
        offered = (message.get("params") or {}).get("protocolVersion")
        found = {
            "protocolVersion": offered if offered in LEGACY else LEGACY[0],
            "capabilities": self.capabilities(),
            "serverInfo": self.identity(),
        }
        if "instructions" in self.opt:
            found["instructions"] = self.opt["instructions"]
        return found

    def play(self, case, message, good):
        name, _, argument = case.partition(":")
        id_ = message["id"]
        if name == "ok":
            self.result(message, good)
            self.answered()
        elif name == "late":
            self.later(float(argument), self.result, message, good)
        elif name == "after":
            self.held.append((argument, message, good))
        elif name == "error":
            code, _, data = argument.partition(":")
            self.error(message, int(code), f"error {code}", json.loads(data) if data else None)
        elif name == "unknown":
            self.error(message, -32601, "Method not found")
        elif name == "exit":
            os.write(2, b"exiting as told\n")
            self.exit(int(argument or 1))
        elif name == "kill":
            os.kill(os.getpid(), int(argument or 9))
        elif name == "empty":
            self.send({"jsonrpc": "2.0", "id": id_, "result": {}})
        elif name == "null":
            self.send({"jsonrpc": "2.0", "id": id_, "result": None})
        elif name == "both":
            error = {"code": int(argument or -32603), "message": "both"}
            self.send({"jsonrpc": "2.0", "id": id_, "result": good, "error": error})
        elif name == "neither":
            self.send({"jsonrpc": "2.0", "id": id_})
        elif name == "array":
            self.send(json.dumps([{"jsonrpc": "2.0", "id": id_, "result": good}]).encode())
        elif name == "garbage":
            self.send(b"this is not JSON")
        elif name == "wrong_id":
            self.send({"jsonrpc": "2.0", "id": id_ + 1000, "result": good})
        elif name == "string_id":
            self.send({"jsonrpc": "2.0", "id": str(id_), "result": good})
        elif name == "float_id":
            self.send({"jsonrpc": "2.0", "id": float(id_), "result": good})
        elif name == "null_id":
            error = {"code": int(argument or -32600), "message": "unreadable"}
            self.send({"jsonrpc": "2.0", "id": None, "error": error})
        elif name == "close":
            os.close(1)
        elif name == "result":
            self.send({"jsonrpc": "2.0", "id": id_, "result": json.loads(argument)})
        elif name == "versions":
            self.result(message, {**good, "supportedVersions": names(argument)})
        elif name == "version":
            self.result(message, {**good, "protocolVersion": argument})
        elif name != "silent":
            raise SystemExit(f"unknown case {case}")

    def answered(self):
        if "die-after" in self.opt:
            self.later(float(self.opt.pop("die-after")), self.exit, 1)
