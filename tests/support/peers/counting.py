"""A modern server whose tool and resource leave a mark for each execution, and then go wrong.

    counting.py --ledger FILE

The tool `mark` takes {"token", "end"}: it appends the token to the ledger, then ends as told:
"answer" · "exit" (no reply, exit status 3) · "cut" (half of the reply, then exit) · "silent" (no
reply) · "slow" (answers after 0.3 s). "once:exit" goes wrong at the first execution of that token
only. `keep` is `mark` by another name. A resource `mark:END/TOKEN`, and a prompt `prompt` with the
arguments "token" and "end", do the same. Standard library only.
"""

import json
import os
import sys
import time

LEDGER = sys.argv[sys.argv.index("--ledger") + 1]
META = "io.modelcontextprotocol/"


def write(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def reply(message, result):
    full = {"resultType": "complete", **result}
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": full}
    return json.dumps(answer).encode() + b"\n"


def done_before(token):
    try:
        with open(LEDGER) as ledger:
            return token in ledger.read().split()
    except FileNotFoundError:
        return False


def execute(message, token, end, result):
    first = not done_before(token)
    with open(LEDGER, "a") as ledger:
        ledger.write(token + "\n")
    if end.startswith("once:"):
        end = end.removeprefix("once:") if first else "answer"
    data = reply(message, result)
    if end == "exit":
        os._exit(3)
    if end == "cut":
        write(data[: len(data) // 2])
        os._exit(3)
    if end == "slow":
        time.sleep(0.3)
    if end != "silent":
        write(data)


def act(message):
    method, params = message["method"], message.get("params") or {}
    hint = {"ttlMs": 600000, "cacheScope": "private"}
    fresh = {"ttlMs": 0, "cacheScope": "private"}
    if method == "server/discover":
        offered = {"tools": {}, "resources": {}, "prompts": {}}
        write(
            reply(message, {"supportedVersions": ["2026-07-28"], "capabilities": offered, **hint})
        )
    elif method == "tools/list":
        schema = {"type": "object"}
        tools = [{"name": name, "inputSchema": schema} for name in ("mark", "keep")]
        write(reply(message, {"tools": tools, **hint}))
    elif method == "prompts/list":
        write(reply(message, {"prompts": [{"name": "prompt"}], **hint}))
    elif method in ("resources/list", "resources/templates/list"):
        key = "resources" if method == "resources/list" else "resourceTemplates"
        write(reply(message, {key: [], **hint}))
    elif method == "tools/call":
        told = params.get("arguments") or {}
        content = {"content": [{"type": "text", "text": told["token"]}]}
        execute(message, told["token"], told.get("end", "answer"), content)
    elif method == "prompts/get":
        told = params.get("arguments") or {}
        execute(message, told["token"], told["end"], {"messages": []})
    elif method == "resources/read":
        end, _, token = params["uri"].removeprefix("mark:").rpartition("/")
        text = {"contents": [{"uri": params["uri"], "text": token}]}
        execute(message, token, end, {**text, **fresh})


for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message and "method" in message:
        act(message)
