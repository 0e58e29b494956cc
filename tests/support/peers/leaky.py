"""A server that repeats its own secrets wherever a server can say something (standard library).

`python -I -S leaky.py MODE [anything]`: it knows as secrets each value of its environment and each
of its arguments that contains `cnry-`.

  refuse   answers server/discover by an error with them, as every other request
  serve    answers; its tools fail in all ways: rpc_error, fail, odd, noise, die, progress, ok
  die      writes them to stderr and exits
"""

import json
import os
import sys

SECRETS = " ".join(value for value in [*os.environ.values(), *sys.argv[2:]] if "cnry-" in value)
TOOLS = ["rpc_error", "fail", "odd", "noise", "die", "progress", "ok", "ask", "broken"]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def error(message, code=-32000):
    told = {"code": code, "message": f"denied for {SECRETS}", "data": {"used": SECRETS}}
    send({"id": message["id"], "error": told})


def serve(message):
    complete = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    match message["method"]:
        case "server/discover":
            info = {"name": f"leaky {SECRETS}"[:200], "version": SECRETS, "title": SECRETS}
            result = {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "experimental": {"secret": {"value": SECRETS}}},
                "serverInfo": info,
                "instructions": SECRETS,
            }
        case "tools/list":
            schema = {"type": "object"}
            tools = [{"name": name, "inputSchema": schema} for name in TOOLS]
            tools.append({"name": f"bad {SECRETS}", "inputSchema": {"type": SECRETS}})
            result = {"tools": tools}
        case "tools/call":
            return call(message, message["params"]["name"])
        case _:
            return error(message, -32601)
    return send({"id": message["id"], "result": {**complete, **result}})


def call(message, tool):
    text = [{"type": "text", "text": f"used {SECRETS}"}]
    result = {"resultType": "complete", "content": text}
    match tool:
        case "rpc_error":
            return error(message)
        case "fail":
            result["isError"] = True
        case "odd":
            result["resultType"] = SECRETS
        case "ask":
            wanted = {"method": SECRETS, "params": {"message": SECRETS}}
            result = {"resultType": "input_required", "inputRequests": {SECRETS: wanted}}
        case "broken":
            result["content"] = SECRETS
        case "noise":
            sys.stdout.write(f"log: {SECRETS}\n")
            send({"id": SECRETS, "result": {"secret": SECRETS}})
            send({"method": f"notifications/{SECRETS}", "params": {"secret": SECRETS}})
            send({"id": 1, "method": SECRETS, "params": {"secret": SECRETS}})
        case "die":
            sys.stderr.write(f"fatal: {SECRETS}\n")
            sys.stderr.flush()
            os._exit(3)
        case _:
            pass
    return send({"id": message["id"], "result": result})


def main(mode):
    sys.stderr.write(f"starting with {SECRETS}\n")
    sys.stderr.flush()
    if mode == "die":
        sys.exit(2)
    sys.stdout.write(f"banner {SECRETS}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            (serve if mode == "serve" else error)(message)


main(sys.argv[1])
