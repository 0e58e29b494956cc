"""An agent as raw HTTP: what it sends is what a test says, what comes back is judged by the schema.

It shares no code with the host, so that both cannot be wrong in the same way.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import TYPE_CHECKING, Any

from tests.support.published import definition_problems

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import aiohttp

KEY = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
STAMP: dict[str, Any] = {f"{KEY}protocolVersion": MODERN, f"{KEY}clientCapabilities": {}}

RESULTS = {
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
ERRORS = {
    -32700: "ParseError",
    -32600: "InvalidRequestError",
    -32601: "MethodNotFoundError",
    -32602: "InvalidParamsError",
    -32603: "InternalError",
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}
NOTES = {
    "notifications/progress": "ProgressNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/prompts/list_changed": "PromptListChangedNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/resources/updated": "ResourceUpdatedNotification",
}


class Answer:
    """What came back: `status`, `headers`, `raw` and all `messages`, the response last."""

    def __init__(self, status: int, headers: Any, raw: bytes) -> None:
        self.status, self.headers, self.raw = status, headers, raw
        self.kind = headers.get("Content-Type", "").partition(";")[0]
        if self.kind == "text/event-stream":
            self.messages = [json.loads(data) for data in events(raw)]
        else:
            self.messages = [json.loads(raw)] if raw else []

    @property
    def result(self) -> dict[str, Any]:
        result: dict[str, Any] = self.messages[-1]["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.messages[-1]["error"]
        return error

    @property
    def text(self) -> str:
        return "".join(part.get("text", "") for part in self.result["content"])


def events(raw: bytes) -> list[bytes]:
    """The data of each whole event; comments left out."""
    found = []
    for event in raw.split(b"\n\n")[:-1]:
        lines = [line for line in event.split(b"\n") if not line.startswith(b":")]
        if lines:
            assert lines[0] == b"event: message"
            assert [line[:6] for line in lines[1:]] == [b"data: "]
            found.append(lines[1][6:])
    return found


def judge(message: dict[str, Any], method: str) -> None:
    """Raises AssertionError for a message of a server that the published schema refuses."""
    if "method" in message:
        found = definition_problems(message, MODERN, NOTES[message["method"]])
    elif "error" in message:
        code = message["error"]["code"]
        part = message if code in (-32020, -32021, -32022) else message["error"]
        found = definition_problems(message, MODERN, "JSONRPCErrorResponse")
        found += definition_problems(part, MODERN, ERRORS.get(code, "Error"))
    else:
        asks = message["result"].get("resultType") == "input_required"
        found = definition_problems(message, MODERN, "JSONRPCResultResponse")
        kind = "InputRequiredResult" if asks else RESULTS[method]
        found += definition_problems(message["result"], MODERN, kind)
    assert not found, found


class Agent:
    """`ask` sends a well-made request; every deviation is an argument."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url
        self._ids = itertools.count(1)

    async def ask(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> Answer:
        """`meta` adds to `_meta`, `headers` replaces or (None) removes, `request_id` is its id."""
        body, headers = self.request(method, params, **more)
        answer = await self.post(body, headers)
        for message in answer.messages:
            judge(message, method)
        return answer

    async def post(self, body: bytes, headers: dict[str, str]) -> Answer:
        async with self._session.post(self.url, data=body, headers=headers) as response:
            return Answer(response.status, response.headers, await response.read())

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, params: dict[str, Any] | None = None, **more: Any
    ) -> AsyncIterator[Stream]:
        """A request whose answer is read event by event; leaving the block disconnects."""
        body, headers = self.request(method, params, **more)
        async with self._session.post(self.url, data=body, headers=headers) as response:
            try:
                yield Stream(response, method)
            finally:
                response.close()

    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        meta: dict[str, Any] | None = None,
        headers: dict[str, str | None] | None = None,
        request_id: Any = None,
    ) -> tuple[bytes, dict[str, str]]:
        given = dict(params or {})
        given["_meta"] = {**STAMP, **(meta or {})}
        number = next(self._ids) if request_id is None else request_id
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": given}
        own: dict[str, str | None] = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
            "Mcp-Name": given.get("name") or given.get("uri"),
        }
        own |= headers or {}
        return json.dumps(body).encode(), {k: v for k, v in own.items() if v is not None}


class Stream:
    """One answer, event by event."""

    def __init__(self, response: aiohttp.ClientResponse, method: str) -> None:
        self.response = response
        self._method = method
        self._buffer = b""
        self.comments = 0

    async def next(self) -> dict[str, Any] | None:
        """The next message; None at the end of the stream."""
        while True:
            while b"\n\n" not in self._buffer:
                chunk = await self.response.content.readany()
                if not chunk:
                    return None
                self._buffer += chunk
            event, _, self._buffer = self._buffer.partition(b"\n\n")
            found = events(event + b"\n\n")
            if not found:
                self.comments += 1
                continue
            message: dict[str, Any] = json.loads(found[0])
            judge(message, self._method)
            return message
