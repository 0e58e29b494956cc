"""Every feature over HTTP with servers that nobody here wrote, or that stand on other people's
libraries: four of the modern era, two of Streamable HTTP before it, two of HTTP+SSE."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import Host
from observant_host.errors import CallTimeout
from tests.interop.http_servers import MODERN, Kind, kinds, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from observant_host import HttpServer

pytestmark = pytest.mark.interop

NAMES = (
    "python everything-server",
    "typescript-sdk-2",
    "fastmcp-4",
    "python-sdk-2",
    "python-sdk-1",
    "python-sdk-1 sse",
    "server-everything",
    "server-everything sse",
)
TOOLS = {
    "python everything-server": ("test_simple_text", {}, "simple text"),
    "typescript-sdk-2": ("divide", {"a": 3, "b": 2}, "1.5"),
    "fastmcp-4": ("multiply", {"a": 2, "b": 3}, "6"),
    "python-sdk-2": ("add", {"a": 2, "b": 3}, "5"),
    "python-sdk-1": ("subtract", {"a": 2, "b": 3}, "-1"),
    "server-everything": ("echo", {"message": "heard"}, "heard"),
}
PROMPTS = {
    "python everything-server": (
        "test_prompt_with_arguments",
        {"arg1": "one", "arg2": "two"},
        b"one",
    ),
    "typescript-sdk-2": ("greet", {"name": "Ada"}, b"hello to Ada"),
    "fastmcp-4": ("greet", {"name": "Ada"}, b"hello to Ada"),
    "python-sdk-1": ("greet", {"name": "Ada"}, b"hello to Ada"),
    "server-everything": ("args-prompt", {"city": "Ulm", "state": "x"}, b"Ulm"),
}
RESOURCES = {
    "python everything-server": ("test://static-text", b"static text"),
    "typescript-sdk-2": ("note://hello", b"hello"),
    "fastmcp-4": ("note://hello", b"hello"),
    "python-sdk-1": ("note://hello", b"hello"),
}
TEMPLATED = {
    "python everything-server": ("test://template/7/data", b"7"),
    "typescript-sdk-2": ("note://Ada", b"note of Ada"),
    "fastmcp-4": ("note://Ada", b"note of Ada"),
    "python-sdk-1": ("note://Ada", b"note of Ada"),
    "server-everything": ("demo://resource/dynamic/text/3", b"3"),
}
COMPLETED = {
    "python everything-server": ("test_prompt_with_arguments", "arg1", []),
    "typescript-sdk-2": ("greet", "name", ["Ada", "Alan"]),
    "python-sdk-1": ("greet", "name", ["Ada", "Alan"]),
    "server-everything": ("completable-prompt", "department", None),
}
PROGRESSING = {
    "python everything-server": ("test_tool_with_progress", {}, 3),
    "fastmcp-4": ("count", {}, 3),
    "python-sdk-1": ("count", {}, 3),
    "server-everything": ("trigger-long-running-operation", {"duration": 0.6, "steps": 3}, 3),
}
ASKING = {
    "python everything-server": ("test_input_required_result_elicitation", "Ada"),
    "python-sdk-1": ("ask", "accept: blue"),
    "server-everything": ("trigger-elicitation-request", "Ada"),
}
SLOW = {
    "python-sdk-1": ("wait", {}),
    "server-everything": ("trigger-long-running-operation", {"duration": 60, "steps": 2}),
}


def plain(name: str) -> str:
    """The same server behind HTTP+SSE has the same features."""
    return name.removesuffix(" sse")


def having(features: dict[str, Any]) -> Any:
    return pytest.mark.parametrize("name", [name for name in NAMES if plain(name) in features])


class Running:
    """The servers that were needed so far, each started once."""

    def __init__(self, logs: Any) -> None:
        self.kinds = kinds()
        self._logs = logs
        self._open: dict[str, tuple[HttpServer, Any]] = {}

    def endpoint(self, name: str) -> HttpServer:
        if name not in self._open:
            context = serving(self.kinds[name], self._logs / f"{name.replace(' ', '-')}.log")
            self._open[name] = (context.__enter__(), context)
        return self._open[name][0]

    def end(self) -> None:
        for _, context in self._open.values():
            context.__exit__(None, None, None)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    servers = Running(tmp_path_factory.mktemp("http"))
    try:
        yield servers
    finally:
        servers.end()


async def elicited(_request: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Ada", "colour": "blue", "check": True}}


async def sampled(_request: Any) -> dict[str, Any]:
    text = {"type": "text", "text": "sampled"}
    return {"role": "assistant", "content": text, "model": "none", "stopReason": "endTurn"}


async def roots(_request: Any) -> dict[str, Any]:
    return {"roots": [{"uri": "file:///tmp", "name": "scratch"}]}


@asynccontextmanager
async def host_of(running: Running, name: str) -> AsyncIterator[Host]:
    """A host with this one server, which must be ready in the era it speaks."""
    endpoint = running.endpoint(name)
    kind: Kind = running.kinds[name]
    host = Host(on_elicitation=elicited, on_sampling=sampled, on_roots=roots)
    host.add_server("it", endpoint, allow_legacy=kind.allowance, call_timeout_s=20)
    async with host:
        view = host.servers["it"]
        assert (view.state, view.version) == ("ready", kind.version), view.detail
        yield host


@pytest.mark.parametrize("name", NAMES)
async def test_its_era_is_found_and_a_tool_answers(running: Running, name: str) -> None:
    tool, arguments, answer = TOOLS[plain(name)]
    async with host_of(running, name) as host:
        result = await host.call_tool(tool, arguments)
        assert answer in result.text
        many = await asyncio.gather(*(host.call_tool(tool, arguments) for _ in range(20)))
        assert all(one.text == result.text for one in many)


@pytest.mark.parametrize("name", ["python-sdk-1", "server-everything"])
async def test_without_an_allowance_an_old_one_is_refused(running: Running, name: str) -> None:
    host = Host()
    host.add_server("it", running.endpoint(name))
    async with host:
        view = host.servers["it"]
        assert (view.state, view.cause) == ("unavailable", "policy")


@having(PROMPTS)
async def test_its_prompts_are_got(running: Running, name: str) -> None:
    prompt, arguments, answer = PROMPTS[plain(name)]
    async with host_of(running, name) as host:
        assert answer in (await host.get_prompt(prompt, arguments)).raw


@having(RESOURCES)
async def test_its_resources_are_read(running: Running, name: str) -> None:
    uri, answer = RESOURCES[plain(name)]
    async with host_of(running, name) as host:
        assert uri in {resource.uri for resource in host.catalogue.resources}
        assert answer in (await host.read_resource(uri)).raw


@having(TEMPLATED)
async def test_what_its_templates_name_is_read(running: Running, name: str) -> None:
    uri, answer = TEMPLATED[plain(name)]
    async with host_of(running, name) as host:
        assert any(resource.resource.is_template for resource in host.catalogue.resources)
        assert answer in (await host.read_resource(uri, server="it")).raw


@having(COMPLETED)
async def test_it_completes_an_argument(running: Running, name: str) -> None:
    prompt, argument, values = COMPLETED[plain(name)]
    async with host_of(running, name) as host:
        result = await host.complete(
            {"type": "ref/prompt", "name": prompt}, {"name": argument, "value": ""}, server="it"
        )
        given = result.data["completion"]["values"]
        assert given == values if values is not None else "Engineering" in given


@having(PROGRESSING)
async def test_progress_comes_while_a_call_runs(running: Running, name: str) -> None:
    tool, arguments, steps = PROGRESSING[plain(name)]
    seen: list[float] = []
    async with host_of(running, name) as host:
        await host.call_tool(
            tool, arguments, on_progress=lambda progress, _total, _message: seen.append(progress)
        )
    assert len(seen) == steps
    assert seen == sorted(seen)


@having(ASKING)
async def test_what_it_asks_for_is_answered_by_a_handler(running: Running, name: str) -> None:
    tool, answer = ASKING[plain(name)]
    async with host_of(running, name) as host:
        result = await host.call_tool(tool)
        assert not result.is_error, result.text
        assert answer in result.text


@having({"server-everything": 1})
async def test_it_gets_samples_and_roots(running: Running, name: str) -> None:
    async with host_of(running, name) as host:
        asked = await host.call_tool("trigger-sampling-request", {"prompt": "p", "maxTokens": 9})
        assert "sampled" in asked.text
        assert "file:///tmp" in (await host.call_tool("get-roots-list")).text


@having(SLOW)
async def test_a_call_that_ran_out_of_time_is_cancelled_there(running: Running, name: str) -> None:
    tool, arguments = SLOW[plain(name)]
    async with host_of(running, name) as host:
        before = await _cancelled(host)
        with pytest.raises(CallTimeout):
            await host.call_tool(tool, arguments, deadline_s=0.5)
        if before is not None:
            async with asyncio.timeout(10):
                while await _cancelled(host) == before:
                    await asyncio.sleep(0.05)
        assert host.servers["it"].state == "ready"


async def _cancelled(host: Host) -> int | None:
    if "how_often_cancelled" not in host.catalogue.lookup:
        return None
    return int((await host.call_tool("how_often_cancelled")).text)


@having({"python-sdk-1": 1, "python-sdk-2": 1})
async def test_a_changed_list_is_read_again(running: Running, name: str) -> None:
    """A legacy server says so on its own, a modern one on the stream that listens."""
    async with host_of(running, name) as host:
        if running.kinds[name].version == MODERN:
            async with asyncio.timeout(10):
                while host.servers["it"].layers.listen != "ok":
                    await asyncio.sleep(0.05)
        await host.call_tool("grow")
        async with asyncio.timeout(10):
            while "grown" not in host.catalogue.lookup:
                await asyncio.sleep(0.05)
        assert (await host.call_tool("grown")).text == "grown"


async def test_an_argument_is_mirrored_into_a_header_that_the_server_checks(
    running: Running,
) -> None:
    async with host_of(running, "python everything-server") as host:
        for region in ("eu", "naïve ☃", " padded "):
            result = await host.call_tool("test_x_mcp_header", {"region": region})
            assert result.text == f"region={region}"
