"""The service of a running host, through real sockets."""

from __future__ import annotations

import asyncio
import json
import stat
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest

from observant_host import errors
from observant_host.config import HostConfig, ServiceSettings
from observant_host.service.app import Service, serve
from observant_host.service.client import HostClient
from observant_host.service.private_socket import socket_path
from observant_host.timing.clock import SystemClock
from observant_host.timing.tasks import Signal
from tests.support.hosts import PATIENCE_S, add, quick_host
from tests.support.processes import alive, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host

LOCAL = ServiceSettings(listen="127.0.0.1:0", drain_timeout_s=5)


class Running:
    """A host that serves, and how to end it."""

    def __init__(self, host: Host, state_dir: Path) -> None:
        self.host = host
        self.state_dir = state_dir
        self.stop, self.hurry = Signal(), Signal()
        self.listening: asyncio.Future[dict[str, str]] = asyncio.Future()
        self.published = asyncio.Event()

    async def serve(self) -> None:
        await serve(
            self.host,
            self.stop,
            clock=SystemClock(),
            state_dir=self.state_dir,
            hurry=self.hurry,
            listening=self.listening.set_result,
            published=self.published.set,
        )


def host_with(state_dir: Path, *, settings: ServiceSettings = LOCAL, **keys: Any) -> Host:
    config = HostConfig(service=settings)
    return quick_host(state_dir=state_dir, config=config, **keys)[0]


@asynccontextmanager
async def running(host: Host, state_dir: Path) -> AsyncIterator[Running]:
    one = Running(host, state_dir)
    task = asyncio.create_task(one.serve())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await one.published.wait()
        yield one
    finally:
        one.stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await task


@asynccontextmanager
async def client_of(state_dir: Path) -> AsyncIterator[HostClient]:
    client = await HostClient.connect(state_dir, principal="cli:ann")
    assert client is not None
    async with client:
        yield client


async def test_the_documents_of_the_command_line_come_over_the_private_socket(
    tmp_path: Path,
) -> None:
    host = host_with(tmp_path)
    add(host, "new", {"tools": "echo", "prompts": "greet", "resources": "file:///a"})
    add(host, "old", {"era": "legacy"})
    async with running(host, tmp_path), client_of(tmp_path) as client:
        socket = socket_path(tmp_path)
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        servers = json.loads(await client.servers())["servers"]
        assert [(one["name"], one["state"]) for one in servers] == [
            ("new", "ready"),
            ("old", "unavailable"),
        ]
        assert set(servers[1]) == {
            *("name", "transport", "state", "cause", "era", "version", "reason", "detail"),
            *("since", "generation", "allow_legacy", "fingerprint", "server_info"),
            *("capabilities", "tools", "layers", "evidence", "pid", "trace_id", "ruling"),
        }
        assert set(servers[0]["layers"]) == {
            *("process", "transport", "era", "listing", "listen", "last_call"),
        }
        assert json.loads(await client.server("old"))["reason"] == "ambiguous_error"
        for kind in ("tools", "prompts", "resources"):
            document = json.loads(await client.catalogue(kind))
            assert len(document[kind]) == 1
        found = json.loads(await client.decisions("old"))
        assert found["server"] == "old"
        assert found["decisions"][0]["to"] == "unknown"


async def test_a_call_goes_through_and_its_outcome_comes_back(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    add(host, "s", {"tools": "echo,fail,rpc_error,mute"})
    async with running(host, tmp_path), client_of(tmp_path) as client:

        async def call(name: str, arguments: bytes = b"{}", **keys: Any) -> Any:
            return json.loads(await client.call(name, arguments, deadline_s=keys.get("deadline_s")))

        answered = await call("echo", b'{"text":"hi"}')
        assert (answered["outcome"], answered["server"], answered["era"]) == ("ok", "s", "modern")
        assert "hi" in json.dumps(answered["result"])
        assert (await call("fail"))["outcome"] == "tool_error"
        assert (await call("rpc_error", b'{"code":-1,"message":"no"}'))["error"]["code"] == -1
        late = await call("mute", deadline_s=0.2)
        assert (late["outcome"], late["delivery"]) == ("timeout", "sent_no_reply")
        unknown = await call("ecko")
        assert (unknown["outcome"], unknown["result"]) == ("invalid", None)


async def test_every_outcome_has_its_http_status(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    add(host, "s", {"tools": "echo,fail,mute"})
    async with (
        running(host, tmp_path),
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket_path(tmp_path)))) as http,
    ):

        async def post(path: str, body: object) -> int:
            async with http.post(f"http://host/api/v1/{path}", json=body) as answer:
                return answer.status

        call = "tools/call"
        assert await post(call, {"name": "echo", "arguments": {"text": "x"}}) == 200
        assert await post(call, {"name": "fail"}) == 200
        assert await post(call, {"name": "nothing"}) == 404
        assert await post(call, {"name": "mute", "deadline_s": 0.1}) == 504
        assert await post(call, {"nome": "x"}) == 400
        assert await post("servers/nobody/probe", {}) == 404
        assert await post("servers/s/explode", {}) == 404
        host.refuse_calls()
        assert await post(call, {"name": "echo"}) == 503


async def test_prompts_and_resources_are_read_like_tools_are_called(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    add(host, "s", {"tools": "echo", "prompts": "greet", "resources": "file:///a"})
    async with running(host, tmp_path), client_of(tmp_path) as client:
        prompt = json.loads(await client.prompt("greet", b'{"who":"Ada"}', deadline_s=5))
        assert (prompt["outcome"], prompt["server"]) == ("ok", "s")
        assert "Ada" in prompt["result"]["messages"][0]["content"]["text"]
        read = json.loads(await client.resource("file:///a", server=None, deadline_s=5))
        assert read["result"]["contents"][0]["text"] == "content of file:///a"
        other = json.loads(await client.resource("other:///b", server="s", deadline_s=5))
        assert other["outcome"] == "ok"
        nothing = json.loads(await client.resource("file:///none", server=None, deadline_s=5))
        assert (nothing["outcome"], nothing["result"]) == ("invalid", None)


async def test_operators_acts_carry_who_and_why(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    add(host, "old", {"era": "legacy"})
    async with running(host, tmp_path), client_of(tmp_path) as client:
        found = json.loads(await client.examine("old"))
        assert found["suggestion"]["keys"]["allow_legacy"] == ["2025-11-25"]
        view = json.loads(await client.probe("old"))
        assert view["state"] == "unavailable"
        view = json.loads(await client.allow("old", until=None, reason="archive"))
        assert (view["state"], view["era"]) == ("ready", "legacy")
        given = host.core.memory.memory.allowances["old"]
        assert (given.principal, given.reason) == ("cli:ann", "archive")
        with pytest.raises(errors.InvalidCall) as unknown:
            await client.probe("nobody")
        assert unknown.value.unknown


async def test_every_act_on_a_server_comes_over_the_socket(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    add(host, "s")
    async with running(host, tmp_path), client_of(tmp_path) as client:

        async def act(verb: str, **keys: Any) -> Any:
            return json.loads(await client.act("s", verb, **keys))

        assert (await act("restart"))["generation"] == 2
        assert "held by cli:ann until" in (await act("hold", for_s=60))["detail"]
        assert "held" not in (await act("retry"))["detail"]
        off = await act("disable", reason="it leaks")
        assert (off["state"], off["pid"]) == ("disabled", None)
        assert off["detail"].startswith("disabled by cli:ann: it leaks")
        assert (await act("drain", reason="for longer"))["state"] == "disabled"
        assert (await act("enable"))["state"] == "ready"
        assert (await act("probe"))["state"] == "ready"
        for verb, keys in (("disable", {"for_s": -1.0}), ("probe", {"for_s": 1.0})):
            with pytest.raises(errors.InvalidCall, match="for_s"):
                await act(verb, **keys)
        with pytest.raises(errors.InvalidCall, match="there is no "):
            await act("explode")


async def test_a_client_that_goes_away_cancels_its_call(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    add(host, "s", {"tools": "mute"})
    async with running(host, tmp_path), client_of(tmp_path) as client:
        gate = host.core.fleet.get("s").peer.gate  # type: ignore[union-attr]
        call = asyncio.create_task(client.call("mute", b"{}", deadline_s=None))
        await eventually(lambda: gate.in_flight == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await eventually(lambda: gate.in_flight == 0)


async def test_health_readiness_and_metrics_are_served_on_the_network(tmp_path: Path) -> None:
    host = host_with(tmp_path, telemetry=None)
    add(host, "must", {"tools": "echo,kill"}, required=True, restart_initial_s=60)
    add(host, "may", {"era": "legacy"})
    async with running(host, tmp_path) as one, aiohttp.ClientSession() as http:
        base = (await one.listening)["admin"]

        async def get(path: str) -> tuple[int, str]:
            async with http.get(base + path) as answer:
                return answer.status, await answer.text()

        assert (await get("/healthz"))[0] == 200
        status, body = await get("/readyz")
        assert status == 200, body
        status, body = await get("/metrics")
        assert status == 200
        assert 'observant_host_peer_state{peer="must",state="ready"} 1' in body
        assert 'observant_host_peer_processes{peer="must"} 1' in body
        assert (await get("/api/v1/servers"))[0] == 200
        host.leave()
        assert (await get("/readyz"))[0] == 503


async def test_health_is_answered_and_readiness_refused_while_the_host_starts(
    tmp_path: Path,
) -> None:
    host = host_with(tmp_path)
    add(host, "s", {"discover": "silent"}, probe_timeout_s=600)
    one = Running(host, tmp_path)
    task = asyncio.create_task(one.serve())
    async with asyncio.timeout(PATIENCE_S):
        base = (await one.listening)["admin"]
        async with aiohttp.ClientSession() as http:
            async with http.get(base + "/healthz") as answer:
                assert answer.status == 200
            async with http.get(base + "/readyz") as answer:
                assert answer.status == 503
        one.stop.set()
        await task
    assert host.servers["s"].state == "stopped"


async def test_a_stopped_service_lets_open_calls_end_and_a_second_signal_does_not(
    tmp_path: Path,
) -> None:
    host = host_with(tmp_path)
    add(host, "s", {"tools": "slow"})
    async with running(host, tmp_path) as one, client_of(tmp_path) as client:
        call = asyncio.create_task(client.call("slow", b'{"s":0.3}', deadline_s=None))
        gate = host.core.fleet.get("s").peer.gate  # type: ignore[union-attr]
        await eventually(lambda: gate.in_flight == 1)
        one.stop.set()
        assert json.loads(await call)["outcome"] == "ok"

    host = host_with(tmp_path)
    add(host, "s", {"tools": "mute"})
    async with running(host, tmp_path) as one, client_of(tmp_path) as client:
        call = asyncio.create_task(client.call("mute", b"{}", deadline_s=None))
        gate = host.core.fleet.get("s").peer.gate  # type: ignore[union-attr]
        await eventually(lambda: gate.in_flight == 1)
        one.stop.set()
        one.hurry.set()
        assert json.loads(await call)["outcome"] == "unavailable"


async def test_a_second_signal_also_ends_servers_that_will_not_end(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    add(host, "s", {"ignore_eof": True, "ignore_term": True}, shutdown_timeout_s=600)
    async with running(host, tmp_path) as one:
        pid = host.servers["s"].pid
        assert pid is not None
        one.stop.set()
        await eventually(lambda: host.draining)
        one.hurry.set()
    assert not alive(pid)


async def test_no_client_where_no_host_runs(tmp_path: Path) -> None:
    assert await HostClient.connect(tmp_path) is None
    host = host_with(tmp_path)
    async with running(host, tmp_path):
        pass
    assert await HostClient.connect(tmp_path) is None


async def test_a_deep_state_folder_has_a_socket_too(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 60) / ("y" * 60)
    host = host_with(deep)
    async with running(host, deep), client_of(deep) as client:
        assert msgspec.json.decode(await client.servers()) == {"servers": []}


async def test_a_taken_address_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    service = Service(host)
    await service.listen()
    port = service.addresses["admin"].rpartition(":")[2]
    other = host_with(tmp_path, settings=ServiceSettings(listen=f"127.0.0.1:{port}"))
    second = Service(other)
    with pytest.raises(errors.ConfigError, match="listen"):
        await second.listen()
    await second.close()
    await service.close()
