"""Streams of changes of a `scripted` server: how each is acknowledged, told, and ended."""

KEY = "io.modelcontextprotocol/"
STREAMED = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Streams:
    """The part of a server that answers subscriptions/listen."""

    def listen_to(self, message):
        """One subscriptions/listen, as the option says."""
        cases = self.opt.get("listen", "ok").split(",")
        self.listens += 1
        name, _, argument = cases[min(self.listens, len(cases)) - 1].partition(":")
        if name in ("ok", "only", "graceful", "cancelled", "both", "early", "crash", "cut"):
            self.stream(message, name, argument)
        elif name == "status":
            self.here.response.empty(int(argument))
        else:
            self.play(f"{name}:{argument}" if argument else name, message, None)

    def stream(self, message, how, argument):
        """Acknowledge, and end it as told."""
        id_, wanted = message["id"], message["params"]["notifications"]
        if how == "early":
            self.tell_stream(id_, "notifications/tools/list_changed", {})
        granted = {key: value for key, value in wanted.items() if how != "only" or key == argument}
        self.tell_stream(id_, ACKNOWLEDGED, {"notifications": granted})
        self.streams[id_] = granted
        if how in ("graceful", "cancelled", "both", "crash", "cut"):
            self.later(float(argument), self.end_stream, how, id_)

    def add_unseen(self):
        if "unseen" in self.opt:
            self.tools.append(self.tool(self.opt["unseen"]))

    def end_stream(self, how, id_):
        self.streams.pop(id_, None)
        self.add_unseen()
        if how == "crash":
            self.exit(1)
        if how == "cut":
            self.send_in_stream(id_, None)
        if how in ("cancelled", "both"):
            params = {"requestId": id_}
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self.send_in_stream(id_, message)
        if how in ("graceful", "both"):
            result = {"resultType": "complete", "_meta": {KEY + "subscriptionId": id_}}
            self.send_in_stream(id_, {"jsonrpc": "2.0", "id": id_, "result": result})

    def tell_streams(self, method, params):
        for id_, granted in tuple(self.streams.items()):
            if granted.get(STREAMED[method]):
                self.tell_stream(id_, method, params)

    def tell_stream(self, id_, method, params):
        params = {**params, "_meta": {KEY + "subscriptionId": id_}}
        self.send_in_stream(id_, {"jsonrpc": "2.0", "method": method, "params": params})

    def send_in_stream(self, id_, message):
        self.send(message)
