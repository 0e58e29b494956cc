"""A server whose one tool leaves a mark outside, and that goes wrong in the way it was told to.

    python server.py --name N --ledger FILE --go FILE [--temper T] [--seed N] [--http PORT]

The tool `mark` appends its token to the ledger, once an execution, and answers with the token.
While the file `--go` exists the server behaves by its temper (see TEMPERS); without it, well. With
`--http` it listens there and prints the port (0: any), else it speaks on stdin and stdout. Standard
library only, one process, no knowledge of the host; thousands of it are started, so nothing is
imported that is not needed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

Json = dict[str, Any]

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
TEMPERS = ("steady", "slow", "cut", "lost", "flood", "flap", "deaf", "double", "refusing")


class Server:
    def __init__(self, options: dict[str, str]) -> None:
        self.name = options["name"]
        self.temper = options.get("temper", "steady")
        assert self.temper in TEMPERS, self.temper
        self._go = options["go"]
        self._announces = self.temper == "flood" or "http" in options
        self._ledger = os.open(options["ledger"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._dice: Any = None
        if self.temper != "steady":
            import random

            # a fresh process misbehaves afresh
            seed = f"{options.get('seed')}/{self.name}/{time.monotonic_ns()}"
            self._dice = random.Random(seed)

    def misbehaves(self, temper: str, share: float) -> bool:
        """Whether to go wrong in this way now."""
        return temper == self.temper and self._gone_wild() and self._dice.random() < share

    def _gone_wild(self) -> bool:
        try:
            os.stat(self._go)  # noqa: PTH116 -- pathlib would double its start time
        except FileNotFoundError:
            return False
        return True

    def seconds(self, least: float, most: float) -> float:
        return self._dice.uniform(least, most)

    def mark(self, token: str) -> None:
        os.write(self._ledger, f"{token}\n".encode())

    def answer(self, message: Json) -> Json | None:
        """The response of an orderly server; None to a notification and to a stream that stands."""
        if "id" not in message:
            return None
        params = message.get("params") or {}
        found = self._result(message["method"], params)
        if isinstance(found, tuple):
            return {**_head(message), "error": {"code": found[0], "message": found[1]}}
        return {**_head(message), "result": {"resultType": "complete", **found}}

    def _result(self, method: str, params: Json) -> Json | tuple[int, str]:
        cached = {"ttlMs": 600_000, "cacheScope": "public"}
        match method:
            case "server/discover":
                identity = {META + "serverInfo": {"name": self.name, "version": "1"}}
                capabilities = {"tools": {"listChanged": self._announces}}
                offered = {"supportedVersions": [REVISION], "capabilities": capabilities}
                return {**offered, **cached, "_meta": identity}
            case "tools/list":
                schema = {"type": "object", "properties": {"token": {"type": "string"}}}
                tool = {"name": "mark", "description": "Leave a mark.", "inputSchema": schema}
                return {"tools": [tool], **cached}
            case "tools/call":
                token = params["arguments"]["token"]
                self.mark(token)
                return {"content": [{"type": "text", "text": token}], "isError": False}
            case _:
                return (-32601, f"no method {method}")


def _head(message: Json) -> Json:
    return {"jsonrpc": "2.0", "id": message["id"]}


def line_of(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def acknowledged(message: Json) -> Json:
    params = {
        "notifications": message["params"]["notifications"],
        "_meta": {META + "subscriptionId": message["id"]},
    }
    return {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": params,
    }


def changed(subscription: Any) -> Json:
    params = {"_meta": {META + "subscriptionId": subscription}}
    return {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params}


# Standard input and output


def on_stdio(server: Server) -> None:
    if server.misbehaves("flap", 0.3):
        sys.exit(7)
    subscription: Any = None
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message["method"] == "subscriptions/listen":
            subscription = message["id"]
            _write(line_of(acknowledged(message)))
            continue
        call = message["method"] == "tools/call"
        if call:
            _before(server, subscription)
        reply = server.answer(message)
        if reply is not None:
            _reply(server, line_of(reply), call=call)


def _before(server: Server, subscription: Any) -> None:
    if server.misbehaves("flap", 0.02):
        sys.exit(7)
    if server.misbehaves("slow", 0.1):
        time.sleep(server.seconds(0.1, 1.5))
    if server.misbehaves("deaf", 0.01):
        time.sleep(server.seconds(2.0, 6.0))
    if server.misbehaves("flood", 0.05):
        noise = b"".join(b"noise %d\n" % number for number in range(200))
        told = line_of(changed(subscription)) * 20 if subscription is not None else b""
        _write(noise + told)


def _reply(server: Server, data: bytes, *, call: bool) -> None:
    if call and server.misbehaves("cut", 0.02):
        _write(data[: len(data) // 2])
        sys.exit(8)
    if call and server.misbehaves("lost", 0.02):
        os._exit(9)
    _write(data * 2 if call and server.misbehaves("double", 0.1) else data)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def main() -> None:
    words = sys.argv[1:]
    given = {name[2:]: value for name, value in zip(words[::2], words[1::2], strict=True)}
    server = Server(given)
    if "http" in given:
        from on_http import on_http

        on_http(server, int(given["http"]))
    else:
        on_stdio(server)


if __name__ == "__main__":
    main()
