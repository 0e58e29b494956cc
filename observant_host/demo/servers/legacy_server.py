"""A small MCP server of revision 2025-06-18 on stdin and stdout, standard library only.

    python legacy_server.py NAME [--log FILE]

It has never heard of `server/discover`, wants `initialize` first, and refuses everything before
it. `--log`: every method it receives, one a line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

Reply = dict[str, Any]

REVISION = "2025-06-18"

TOOLS = {
    "archive": {"find_record": ("Find a record in the archive.", "number")},
    "attic": {"open_box": ("Open one of the boxes in the attic.", "label")},
}


def answer(name: str, method: str, params: Reply) -> Reply | None:
    """A result, or None for a method it does not know."""
    match method:
        case "initialize":
            return {
                "protocolVersion": REVISION,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1.4.2"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {
                "tools": [
                    {
                        "name": tool,
                        "description": description,
                        "inputSchema": {
                            "type": "object",
                            "properties": {argument: {"type": "string"}},
                            "required": [argument],
                        },
                    }
                    for tool, (description, argument) in TOOLS[name].items()
                ]
            }
        case "tools/call":
            said = ", ".join(f"{k}={v!r}" for k, v in sorted(params.get("arguments", {}).items()))
            text = f"{name}.{params['name']}({said}) answered by process {os.getpid()}"
            return {"content": [{"type": "text", "text": text}]}
        case _:
            return None


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("name", choices=sorted(TOOLS))
    options.add_argument("--log", type=Path)
    given = options.parse_args()
    initialized = False
    for line in sys.stdin:
        message = json.loads(line)
        if given.log:
            with given.log.open("a") as log:
                log.write(f"{message['method']}\n")
        if "id" not in message:
            continue
        method = message["method"]
        initialized = initialized or method == "initialize"
        frame: Reply = {"jsonrpc": "2.0", "id": message["id"]}
        result = answer(given.name, method, message.get("params", {})) if initialized else None
        if result is None:
            frame["error"] = {"code": -32601, "message": f"no method {method!r}"}
        else:
            frame["result"] = result
        sys.stdout.write(json.dumps(frame) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
