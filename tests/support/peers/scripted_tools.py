"""What the scripted server lists, and what each of its known tools does (see `scripted`)."""

import json
import os
import signal
import time


def names(text):
    return [part for part in (text or "").split(",") if part]


class Tools:
    """Mixed into the server. A tool returns its text, or None if it answered (or will not)."""

    def page(self, method, message):
        key = {
            "tools/list": "tools",
            "prompts/list": "prompts",
            "resources/list": "resources",
            "resources/templates/list": "resourceTemplates",
        }.get(method, "items")
        items = {
            "tools": self.tools,
            "prompts": [{"name": name} for name in names(self.opt.get("prompts"))],
            "resources": [
                {"uri": uri, "name": uri.rsplit("/")[-1]}
                for uri in names(self.opt.get("resources"))
            ],
            "resourceTemplates": [
                {"uriTemplate": template, "name": template}
                for template in names(self.opt.get("templates"))
            ],
        }.get(key, [])
        size = int(self.opt.get("page", 0))
        if not size:
            return {key: items}
        cursor = (message.get("params") or {}).get("cursor")
        start = int(cursor.removeprefix("c")) if cursor else 0
        page = {key: items[start : start + size]}
        if self.opt.get("cursor-loop"):
            page["nextCursor"] = f"c{size}"
        elif start + size < len(items):
            page["nextCursor"] = f"c{start + size}"
        return page

    @staticmethod
    def tool(name):
        schema = {"type": "object", "properties": {}}
        if name == "echo":
            schema["properties"] = {"text": {"type": "string"}}
        return {"name": name, "description": f"the tool {name}", "inputSchema": schema}

    def call(self, message):
        params = message.get("params") or {}
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not any(tool.get("name") == name for tool in self.tools):
            self.error(message, -32602, f"Unknown tool: {name}")
            return
        act = getattr(self, f"tool_{name}", None)
        text = act(message, arguments) if act else name
        if text is not None:
            self.text(message, str(text))

    def text(self, message, text, **more):
        self.result(message, {"content": [{"type": "text", "text": text}], **more})

    def tool_echo(self, message, arguments):
        return arguments.get("text", "")

    def tool_add(self, message, arguments):
        return arguments.get("a", 0) + arguments.get("b", 0)

    def tool_slow(self, message, arguments):
        time.sleep(float(arguments.get("s", 1)))
        return arguments.get("tag", "slow")

    def tool_held(self, message, arguments):
        while not os.path.exists(arguments["file"]):
            time.sleep(0.02)
        return "let go"

    def tool_mute(self, message, arguments):
        return None

    def tool_hush(self, message, arguments):
        self.hushed = True
        self.text(message, "not a word more")

    def tool_eat(self, message, arguments):
        self.eaten = bytearray(os.urandom(1 << 20) * int(arguments.get("mb", 64)))
        return len(self.eaten)

    def tool_big(self, message, arguments):
        return "x" * int(arguments.get("bytes", 1 << 20))

    def tool_fail(self, message, arguments):
        self.text(message, "it failed", isError=True)

    def tool_rpc_error(self, message, arguments):
        code = arguments.get("code", -32000)
        self.error(message, code, arguments.get("message", "refused"), arguments.get("data"))

    def tool_structured(self, message, arguments):
        self.text(message, "structured", structuredContent={"value": arguments.get("value")})

    def tool_die(self, message, arguments):
        os.write(2, b"fatal: out of cheese\n")
        self.exit(int(arguments.get("status", 3)))

    def tool_kill(self, message, arguments):
        os.kill(os.getpid(), signal.SIGKILL)

    def tool_garbage(self, message, arguments):
        self.send(b"this is not JSON")

    def tool_env(self, message, arguments):
        return json.dumps({"env": dict(os.environ), "cwd": os.getcwd()})

    def tool_progress(self, message, arguments):
        token = (message["params"].get("_meta") or {}).get("progressToken")
        total = int(arguments.get("n", 3))
        for done in range(1, total + 1):
            if token is not None:
                params = {"progressToken": token, "progress": done, "total": total, "message": "m"}
                self.notify("notifications/progress", params)
            time.sleep(float(arguments.get("s", 0)))
        return "done"

    def tool_close(self, message, arguments):
        os.close(1)

    def tool_ask(self, message, arguments):
        if "inputResponses" in message["params"]:
            return json.dumps(message["params"]["inputResponses"])
        return self.ask(message, arguments)

    def tool_dialogue(self, message, arguments):
        """`state` and `requests` are asked with; the answer is all that then came."""
        params = message["params"]
        if "inputResponses" in params or "requestState" in params:
            meta = params.get("_meta") or {}
            said = {key: params[key] for key in ("inputResponses", "requestState") if key in params}
            said["capabilities"] = meta.get("io.modelcontextprotocol/clientCapabilities")
            said["progressToken"] = meta.get("progressToken")
            return json.dumps(said)
        wanted = {"resultType": "input_required"}
        if "state" in arguments:
            wanted["requestState"] = arguments["state"]
        if "requests" in arguments:
            wanted["inputRequests"] = arguments["requests"]
        self.result(message, wanted)
        return None

    def tool_ask_forever(self, message, arguments):
        return self.ask(message, arguments)

    def ask(self, message, arguments):
        method = arguments.get("method", "elicitation/create")
        form = {"message": "Your name?", "requestedSchema": {"type": "object", "properties": {}}}
        wanted = {"method": method, "params": arguments.get("params", form)}
        self.result(
            message,
            {
                "resultType": "input_required",
                "inputRequests": {arguments.get("key", "who"): wanted},
                "requestState": f"state-{message['id']}",
            },
        )

    def tool_state(self, message, arguments):
        if "requestState" in message["params"]:
            return message["params"]["requestState"]
        self.result(message, {"resultType": "input_required", "requestState": "later"})
        return None

    def tool_request(self, message, arguments):
        answer = self.request(arguments.get("method", "ping"), arguments.get("params", {}))
        return json.dumps(answer)

    def tool_odd(self, message, arguments):
        self.text(message, "odd", resultType=arguments.get("type", "surprise"))

    def tool_noise(self, message, arguments):
        self.write(b'starting\n42\n"ready"\nnull\n[]\n{}\n{"level":"info","id":7}\n{\n')
        return "noisy"

    def tool_dup(self, message, arguments):
        self.text(message, "first")
        return "second"

    def tool_orphan(self, message, arguments):
        self.send({"jsonrpc": "2.0", "id": 999999, "result": {}})
        self.send({"jsonrpc": "2.0", "id": "ghost", "error": {"code": 1, "message": "boo"}})
        return "mine"

    def tool_pid(self, message, arguments):
        return os.getpid()

    def tool_spawn(self, message, arguments):
        pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ)
        self.note("child", child_pid=pid)
        return pid

    def tool_flood(self, message, arguments):
        for number in range(int(arguments.get("n", 1000))):
            self.notify("notifications/message", {"level": "info", "data": number})
        return "flooded"

    def tool_stderr(self, message, arguments):
        os.write(2, arguments.get("text", "").encode() + b"\n")
        return "written"

    def tool_changed(self, message, arguments):
        self.notify(f"notifications/{arguments.get('kind', 'tools')}/list_changed")
        return "changed"

    def tool_add_tool(self, message, arguments):
        self.tools.append(self.tool(arguments["name"]))
        return self.tool_changed(message, {})

    def tool_remove_tool(self, message, arguments):
        self.tools[:] = [tool for tool in self.tools if tool["name"] != arguments["name"]]
        return self.tool_changed(message, {})

    def tool_received(self, message, arguments):
        return self.received.get(arguments.get("method"), 0)

    def tool_log(self, message, arguments):
        params = {"level": arguments.get("level", "info"), "logger": "scripted", "data": "logged"}
        self.notify("notifications/message", params)
        return "logged"

    def tool_updated(self, message, arguments):
        self.notify("notifications/resources/updated", {"uri": arguments["uri"]})
        return "updated"

    def tool_connect(self, message, arguments):
        if "connect" in self.asked:
            return "connected"
        self.asked.add("connect")
        url = "https://example.com/connect"
        wanted = {"mode": "url", "elicitationId": "e-1", "url": url, "message": "Connect"}
        self.error(message, -32042, "a person must connect", {"elicitations": [wanted]})
        return None

    def tool_task(self, message, arguments):
        self.task = {"left": int(arguments.get("polls", 2)), "ms": arguments.get("ms", 20)}
        self.result(message, {"resultType": "task", **self.task_state("working")})

    def task_state(self, status, **more):
        stamp = "2026-07-28T00:00:00Z"
        return {
            "taskId": "task-1",
            "status": status,
            "createdAt": stamp,
            "lastUpdatedAt": stamp,
            "ttlMs": 60000,
            "pollIntervalMs": self.task["ms"],
            **more,
        }

    def task_method(self, message):
        if message["method"] != "tasks/get":
            self.result(message, {})
            return
        self.task["left"] -= 1
        if self.task["left"] > 0:
            self.result(message, self.task_state("working"))
            return
        done = {"content": [{"type": "text", "text": "done"}]}
        self.result(message, self.task_state("completed", result=done))
