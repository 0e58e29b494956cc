"""A small MCP server of revision 2026-07-28 on stdin and stdout, standard library only.

    python modern_server.py NAME [--slow SECONDS] [--rolled-back-by FILE] [--log FILE]

NAME picks what it offers (see TOOLS). `--slow`: its first answer is that late, as with a server
that still downloads or warms up. `--rolled-back-by`: while FILE exists it behaves like the old
release of itself, which knows only `initialize`. `--log`: every method it receives, one a line.
Like real programs it knows nothing about the host that runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

Reply = dict[str, Any]
Refusal = tuple[int, str, object]

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"

TOOLS = {
    "library": {
        "search": ("Search the library's catalogue of books.", "query"),
        "borrow": ("Borrow one book by its title.", "title"),
    },
    "web": {
        "search": ("Search a very small web.", "query"),
        "fetch": ("Fetch one page by its address.", "address"),
    },
    "forecast": {"forecast": ("Tomorrow's weather for one town.", "town")},
    "billing": {"invoice": ("Look one invoice up by its number.", "number")},
}


def listed(name: str) -> list[Reply]:
    return [
        {
            "name": tool,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {argument: {"type": "string"}},
                "required": [argument],
            },
        }
        for tool, (description, argument) in sorted(TOOLS[name].items())
    ]


def answer(name: str, method: str, params: Reply) -> Reply | Refusal:
    """A result, or (code, message, data)."""
    asked = params.get("_meta", {}).get(META + "protocolVersion")
    if asked != REVISION:
        data = {"supported": [REVISION], "requested": asked}
        return (-32022, "unsupported protocol version", data)
    identity = {"_meta": {META + "serverInfo": {"name": name, "version": "2.0.0"}}}
    complete = {"resultType": "complete", **identity}
    cached = {"ttlMs": 60_000, "cacheScope": "public"}
    match method:
        case "server/discover":
            offered: Reply = {"supportedVersions": [REVISION], "capabilities": {"tools": {}}}
            return {**offered, **cached, **complete}
        case "tools/list":
            return {"tools": listed(name), **cached, **complete}
        case "tools/call" if params.get("name") in TOOLS[name]:
            said = ", ".join(f"{k}={v!r}" for k, v in sorted(params.get("arguments", {}).items()))
            text = f"{name}.{params['name']}({said}) answered by process {os.getpid()}"
            return {"content": [{"type": "text", "text": text}], "isError": False, **complete}
        case "tools/call":
            return (-32602, f"no tool {params.get('name')!r}", None)
        case _:
            return (-32601, f"no method {method!r}", None)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("name", choices=sorted(TOOLS))
    options.add_argument("--slow", type=float, default=0.0)
    options.add_argument("--rolled-back-by", type=Path)
    options.add_argument("--log", type=Path)
    given = options.parse_args()
    rolled_back = given.rolled_back_by is not None and given.rolled_back_by.exists()
    print(f"{given.name}: ready for requests", file=sys.stderr, flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if given.log:
            with given.log.open("a") as log:
                log.write(f"{message['method']}\n")
        if "id" not in message:
            continue
        time.sleep(given.slow)
        given.slow = 0.0
        if rolled_back:
            reply: Reply | Refusal = (-32601, f"no method {message['method']!r}", None)
        else:
            reply = answer(given.name, message["method"], message.get("params", {}))
        send(message["id"], reply)


def send(identifier: object, reply: Reply | Refusal) -> None:
    frame: Reply = {"jsonrpc": "2.0", "id": identifier}
    if isinstance(reply, tuple):
        code, text, data = reply
        frame["error"] = {"code": code, "message": text, **({"data": data} if data else {})}
    else:
        frame["result"] = reply
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
