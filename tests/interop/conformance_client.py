"""The client that the official MCP conformance suite drives: the Host's public API, nothing else.

python conformance_client.py URL      (scenario and revision come by MCP_CONFORMANCE_* variables)

At 2026-07-28 nothing is allowed to be legacy; at an older revision exactly this URL is, unless
OBSERVANT_CONF_ALLOW=none. Exit code: 0 all steps of the scenario did what they should, 1 one did
not, 2 unknown scenario, 3 the host refuses the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from observant_host import Host, HttpServer
from observant_host.errors import CallError, InvalidResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

MODERN = "2026-07-28"
LIMIT_S = 20
"""Each scenario takes well under 3 s; the suite itself would wait for us without end."""


NOBODY = "http://127.0.0.1:9/mcp"
"""A second server that is never there: no scenario may notice it."""


class Refused(Exception):
    """The host does not serve this server; the text says why."""


def offered(host: Host) -> dict[str, Any]:
    """Each tool's object as the server sent it, by its local name."""
    return {tool.local_name: msgspec.json.decode(tool.tool.raw) for tool in host.catalogue.tools}


async def nothing_more(host: Host) -> None:
    """Connecting lists everything already."""
    assert host.servers["mock"].era == "modern"


async def initialize(host: Host) -> None:
    assert host.servers["mock"].era == "legacy"


async def add_numbers(host: Host) -> None:
    result = await host.call_tool("add_numbers", {"a": 5, "b": 3})
    assert "8" in result.text, result.text


async def elicitation_defaults(host: Host) -> None:
    result = await host.call_tool("test_client_elicitation_defaults")
    assert not result.is_error, result.text


async def sse_retry(host: Host) -> None:
    result = await host.call_tool("test_reconnection")
    assert not result.is_error, result.text


async def standard_headers(host: Host) -> None:
    for name in offered(host):
        await host.call_tool(name, {})
    for resource in host.catalogue.resources:
        await host.read_resource(resource.uri)
    for prompt in host.catalogue.prompts:
        await host.get_prompt(prompt.name)


async def custom_headers(host: Host) -> None:
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await host.call_tool(call["name"], call["arguments"])


async def invalid_tool_headers(host: Host) -> None:
    assert list(offered(host)) == ["valid_tool"], list(offered(host))
    for name, tool in offered(host).items():
        await host.call_tool(name, _stub(tool["inputSchema"]))


async def request_state(host: Host) -> None:
    for name in ("test_mrtr_echo_state", "test_mrtr_unrelated", "test_mrtr_no_state"):
        result = await host.call_tool(name)
        assert not result.is_error, result.text
    with contextlib.suppress(InvalidResult):
        await host.call_tool("test_mrtr_no_result_type")


async def preservation(host: Host) -> None:
    schema = offered(host)["json_schema_2020_12_tool"]["inputSchema"]
    await host.call_tool("json_schema_echo", {"schema": schema})


SCENARIOS: Mapping[str, Callable[[Host], Awaitable[None]]] = {
    "initialize": initialize,
    "tools_call": add_numbers,
    "elicitation-sep1034-client-defaults": elicitation_defaults,
    "sse-retry": sse_retry,
    "request-metadata": nothing_more,
    "http-standard-headers": standard_headers,
    "http-custom-headers": custom_headers,
    "http-invalid-tool-headers": invalid_tool_headers,
    "sep-2322-client-request-state": request_state,
    "json-schema-ref-no-deref": nothing_more,
    "json-schema-2020-12-preservation": preservation,
}


def _stub(schema: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"string": "x", "integer": 1, "number": 1, "boolean": True}
    return {name: kinds.get(part.get("type"), "x") for name, part in schema["properties"].items()}


async def elicited(request: Any) -> dict[str, Any]:
    """Accepts with the schema's defaults; where it has none, confirms."""
    properties = request.decoded().get("requestedSchema", {}).get("properties", {})
    content = {name: part["default"] for name, part in properties.items() if "default" in part}
    return {"action": "accept", "content": content or {"confirmed": True}}


async def sampled(_request: Any) -> dict[str, Any]:
    text = {"type": "text", "text": "sampled"}
    return {"role": "assistant", "content": text, "model": "none", "stopReason": "endTurn"}


async def roots(_request: Any) -> dict[str, Any]:
    return {"roots": []}


async def drive(scenario: str, url: str, *, allow_legacy: bool | list[str]) -> None:
    host = Host(on_elicitation=elicited, on_sampling=sampled, on_roots=roots)
    host.add_server("mock", HttpServer(url), allow_legacy=allow_legacy)
    host.add_server("down", HttpServer(NOBODY))
    async with host:
        view = host.servers["mock"]
        if view.state != "ready":
            raise Refused(f"{view.state}: {view.reason}: {view.detail}")
        print(f"{view.era} {view.version}; tools: {list(offered(host))}", file=sys.stderr)
        await SCENARIOS[scenario](host)


def permitted() -> bool | list[str]:
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", MODERN)
    if revision == MODERN or os.environ.get("OBSERVANT_CONF_ALLOW") == "none":
        return False
    return [revision]


async def main(url: str) -> int:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    if scenario not in SCENARIOS:
        print(f"no scenario {scenario!r} is known here", file=sys.stderr)
        return 2
    try:
        async with asyncio.timeout(LIMIT_S):
            await drive(scenario, url, allow_legacy=permitted())
    except Refused as refused:
        print(f"refused: {refused}", file=sys.stderr)
        return 3
    except (CallError, AssertionError, TimeoutError) as failed:
        print(f"failed: {type(failed).__name__}: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
