"""The least server of the current protocol, so that what is measured is its client: started with
`python -I -S`, one JSON line in, one out. `--tools N` and `--prefix P` say what it lists,
`--size N` how long a result's text is."""

import json
import os
import sys

ARGV = sys.argv
TOOLS = int(ARGV[ARGV.index("--tools") + 1]) if "--tools" in ARGV else 10
PREFIX = ARGV[ARGV.index("--prefix") + 1] if "--prefix" in ARGV else "t"
SIZE = int(ARGV[ARGV.index("--size") + 1]) if "--size" in ARGV else 16
PROPERTIES = {"text": {"type": "string"}, "n": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": PROPERTIES}
HEAD = '{"resultType":"complete","ttlMs":600000,"cacheScope":"private",'
ANSWERS = {
    "server/discover": HEAD
    + '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":false}},'
    '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"minimal","version":"1"}}}',
    "tools/list": HEAD
    + '"tools":'
    + json.dumps(
        [
            {"name": f"{PREFIX}{n}", "description": f"Tool number {n}.", "inputSchema": SCHEMA}
            for n in range(TOOLS)
        ]
    )
    + "}",
    "tools/call": '{"resultType":"complete","content":[{"type":"text","text":"'
    + "x" * SIZE
    + '"}]}',
}


def answer(line):
    message = json.loads(line)
    if "id" not in message:
        return ""
    known = ANSWERS.get(message["method"])
    what = f'"result":{known}' if known else '"error":{"code":-32601,"message":"Method not found"}'
    return f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{what}}}\n'


def main():
    rest = b""
    while chunk := os.read(0, 1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        out = "".join(answer(line) for line in lines if line).encode()
        while out:
            out = out[os.write(1, out) :]


main()
