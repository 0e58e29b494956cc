"""One host through everything that stdio servers can do to it, with real child processes.

What it told is read as an outsider reads it: metrics as exposition text, spans as lines of OTLP
JSON on disk. Nothing here knows the host's own list of names.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from observant_host import Host, StdioServer, errors
from tests.support.hosts import PATIENCE_S, QUICK, add, reach, until
from tests.support.peers import scripted
from tests.support.processes import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator
    from pathlib import Path

NEVER: dict[str, Any] = {"restart_initial_s": 600, "restart_max_s": 600, "reprobe_max_s": 600}
"""A server that is left alone after its first round, or its first death."""

PROBES = {
    "probe-modern-error": {"discover": "error:-32021"},
    "probe-empty": {"discover": "empty"},
    "probe-malformed": {"discover": "result:[1]"},
    "probe-closed": {"discover": "exit:2"},
    "future": {"discover": "versions:2099-01-01"},
    "advertises-legacy": {"discover": "versions:2025-11-25"},
}
HANDSHAKES = {
    "legacy-error": {"initialize": "error:-32000"},
    "legacy-invalid": {"initialize": "empty"},
    "legacy-closed": {"initialize": "exit:2"},
    "legacy-unsupported": {"initialize": "version:1999-01-01"},
    "legacy-modern": {"initialize": "error:-32022"},
}


@dataclass
class Told:
    """All samples ever served, as (name, labels) to the largest value, and all spans on disk."""

    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    spans: list[dict[str, Any]] = field(default_factory=list)

    def read_metrics(self, text: str) -> None:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                self.samples[key] = max(sample.value, self.samples.get(key, sample.value))
                self.kinds[sample.name] = family.type

    def read_record(self, folder: Path) -> None:
        for path in [*folder.glob("decisions/*.jsonl"), *folder.glob("traces/*.jsonl")]:
            for line in path.read_text().splitlines():
                self.spans += _spans(json.loads(line))

    def values(self, metric: str, label: str) -> set[str]:
        """Values of a label in samples that are not 0."""
        found = [dict(labels) for (name, labels), value in self.samples.items() if value]
        names = [name for (name, _), value in self.samples.items() if value]
        return {labels[label] for name, labels in zip(names, found, strict=True) if name == metric}


def _spans(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in line["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                attributes = {
                    pair["key"]: next(iter(pair["value"].values()))
                    for pair in span.get("attributes", [])
                }
                yield {**span, "attributes": attributes}


async def everything(folder: Path, told: Told) -> None:
    """In one process: a host among its servers, and two that find a server rolled back."""
    await asyncio.gather(
        _a_day(folder / "day", told),
        _rolled_back(folder / "strict", told, remember_modern=True),
        _rolled_back(folder / "lenient", told, remember_modern=False),
    )


async def _a_day(folder: Path, told: Told) -> None:
    host = Host(
        state_dir=folder, record=True, on_elicitation=_answer, startup_deadline_s=PATIENCE_S
    )
    folder.mkdir()
    _configure(host, folder)

    async def look() -> None:
        await asyncio.sleep(1.05)  # it is made at most once a second
        body, _ = await host.metrics()
        told.read_metrics(body.decode())

    await host.open()
    told.read_metrics((await host.metrics())[0].decode())
    try:
        await host.settled()
        await asyncio.gather(_calls(host), _losses(host, look), _lives(host), _acts(host))
        await until(host, "silent-legacy", lambda view: view.generation > 1)
        await until(host, "late-modern", lambda view: view.generation > 1)
        await reach(host, "late-modern", "ready")
        await host.call_tool("add_tool", {"name": "later"})
        await eventually(lambda: any(tool.name == "later" for tool in host.catalogue.tools))
        await look()
    finally:
        await host.close()
    await look()
    told.read_record(folder)


async def _answer(_request: object) -> dict[str, Any]:
    return {"action": "accept", "content": {}}


def _configure(host: Host, folder: Path) -> None:
    tomorrow = (datetime.now(UTC).date() + timedelta(days=1)).isoformat()
    tools = "echo,fail,rpc_error,mute,odd,state,noise,dup,orphan,flood,add_tool"
    offers = {"prompts": "greet", "resources": "mem://one", "templates": "mem://{id}"}
    able: dict[str, Any] = {kind: {} for kind in ("prompts", "resources", "completions")}
    able["tools"] = {"listChanged": True}
    offers["capabilities"] = json.dumps(able)
    add(host, "alpha", {"tools": tools, **offers}, required=True)
    add(host, "beta", {"tools": "echo", "listen": "graceful:0.3,ok"})
    add(host, "deaf", {"tools": "echo", "listen": "silent,ok"}, ack_timeout_s=0.3)
    add(host, "refused", {"era": "legacy"}, **NEVER)
    add(host, "allowed-later", {"era": "legacy", "name": "x"}, **NEVER)
    add(
        host,
        "allowed",
        {"era": "legacy", "tools": "request", "ask_at_initialized": "ping,roots/list"},
        allow_legacy=True,
        legacy_expires=tomorrow,
    )
    for name, options in PROBES.items():
        add(host, name, options, **NEVER)
    add(host, "probe-timeout", {"discover": "silent"}, probe_timeout_s=0.3, **NEVER)
    for name, options in HANDSHAKES.items():
        add(host, name, {"era": "legacy", **options}, allow_legacy=True, **NEVER)
    allowed = {"allow_legacy": True, **NEVER}
    add(host, "expired", {"era": "legacy"}, legacy_expires="2026-01-01", **allowed)
    add(host, "changed", {"era": "legacy"}, legacy_fingerprint="sha256:" + "0" * 64, **allowed)
    add(
        host,
        "silent-legacy",
        {"era": "legacy", "initialize": "silent", "ignore_eof": True, "ignore_term": True},
        allow_legacy=True,
        legacy_probe_timeout_ms=200,
        silent_restart_s=0.3,
        shutdown_timeout_s=0.3,
    )
    add(
        host,
        "late-modern",
        {"discover": "after:notifications/initialized", "discover_then": "ok"},
        allow_legacy=True,
        probe_timeout_s=0.2,
        legacy_probe_timeout_ms=30_000,  # however long its process takes to start
    )
    add(host, "listless", {"list": "silent"}, list_timeout_s=0.2)
    add(host, "off", enabled=False)
    host.add_server("nowhere", StdioServer(["/nowhere/at/all"]), **QUICK)
    add(host, "hasty", {"tools": "mute"}, call_timeout_s=0.2)
    add(host, "narrow", {"tools": "mute"}, max_in_flight=1, queue_max=1, queue_timeout_s=0.3)
    add(host, "stuck", {"tools": "stall,echo"})
    add(host, "queue", {"tools": "slow"}, max_in_flight=1, retry_calls="never", **NEVER)
    twice = {"retry_calls": "idempotent", "idempotent_tools": ["kill"], **NEVER}
    add(host, "twice", {"tools": "kill"}, **twice)
    once = f'if [ -e {folder}/gone ]; then exec sleep 60; fi; touch {folder}/gone; exec "$0" "$@"'
    gone = StdioServer(("/bin/sh", "-c", once, *scripted(tools="kill")))
    host.add_server("gone", gone, **{**QUICK, **twice})
    add(host, "leaving", {"tools": "slow"}, max_in_flight=1, **NEVER)
    add(host, "crashing", {"tools": "die,kill,close"})
    add(host, "hanging", {"tools": "echo,hush"}, probe_timeout_s=0.3, silent_restart_s=0.5)
    add(host, "heavy", {"tools": "echo"}, restart_above_mb=1)


async def _calls(host: Host) -> None:
    """Every outcome that a call can have."""
    call = host.call_tool
    assert (await call("alpha/echo", {"text": "x"})).outcome == "ok"
    assert (await call("fail")).outcome == "tool_error"
    assert (await call("state")).outcome == "ok"
    for name in ("noise", "dup", "orphan"):
        await call(name)
    await call("flood", {"n": 3})
    await host.get_prompt("greet", {})
    await host.read_resource("mem://one")
    await call("allowed/request", {"method": "elicitation/create", "params": _FORM})
    await call("add_tool", {"name": "new"})
    await eventually(lambda: any(tool.name == "new" for tool in host.catalogue.tools))
    await _fails(errors.RpcError, call("rpc_error"))
    await _fails(errors.RpcError, call("rpc_error", {"code": -32602}))
    await host.complete({"type": "ref/prompt", "name": "greet"}, _ARGUMENT)
    await _fails(errors.InvalidCall, call("ehco"))
    await _fails(errors.InvalidResult, call("odd"))
    await _fails(errors.Unavailable, call("refused/echo"))
    await _fails(errors.CallTimeout, call("mute", deadline_s=0.1))
    await _fails(errors.CallTimeout, call("hasty/mute"))
    given_up = asyncio.create_task(call("narrow/mute"))
    await _in_flight(host, "narrow")
    await asyncio.gather(  # one place in the queue, for longer than it waits, and one call too many
        _fails(errors.CallTimeout, call("narrow/mute")),
        _fails(errors.Unavailable, call("narrow/mute")),
    )
    given_up.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await given_up


_FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
_ARGUMENT = {"name": "who", "value": "a"}


def _stand_still() -> None:
    """The loop, for longer than a machine under load makes it."""
    time.sleep(1)


async def _losses(host: Host, look: Any) -> None:
    """Calls whose server dies: those that may be repeated, and every reason why not."""
    call = host.call_tool
    _stand_still()
    await call("stuck/stall")
    filling = asyncio.create_task(
        _fails(errors.Unavailable, call("stuck/echo", {"text": "x" * (1 << 20)}))
    )
    await _in_flight(host, "stuck")
    repeated = asyncio.create_task(call("stuck/echo", {"text": "again"}))
    await _in_flight(host, "stuck", 2)
    _kill(host, "stuck")
    await filling
    assert (await repeated).attempts == 2

    async def lose(name: str) -> None:
        lost = asyncio.create_task(_fails(errors.Unavailable, call(f"{name}/slow", {"s": 30})))
        await _in_flight(host, name)
        unsent = asyncio.create_task(call(f"{name}/slow", deadline_s=30))
        await eventually(lambda: host.core.fleet.get(name).peer.gate.queued)
        await look()
        if name == "leaving":
            await host.act(name, "hold", principal="ann")
        _kill(host, name)
        await lost
        if name == "leaving":
            await reach(host, name, "backoff")
            await look()
            await host.remove_server(name)
            await _fails(errors.Unavailable, unsent)
        assert name == "leaving" or (await unsent).outcome == "ok"

    await asyncio.gather(lose("queue"), lose("leaving"))
    await _fails(errors.Unavailable, call("twice/kill"))  # whatever fails twice has no budget
    await _fails(errors.CallTimeout, call("gone/kill", deadline_s=8))  # less than it may wait
    await host.act("twice", "retry", principal="ann")
    await host.act("twice", "hold", principal="ann")
    await _fails(errors.Unavailable, call("twice/kill"))  # nobody may start it


async def _lives(host: Host) -> None:
    for generation, tool in enumerate(("kill", "die", "close"), 2):
        await _fails(errors.Unavailable, host.call_tool(f"crashing/{tool}"))
        await until(host, "crashing", lambda view, now=generation: view.generation == now)
        await reach(host, "crashing", "ready")
    await reach(host, "hanging", "ready")
    await host.call_tool("hanging/hush")
    await _fails(errors.CallTimeout, host.call_tool("hanging/echo", deadline_s=0.1))
    for _ in range(2):
        await host.core.sampler.look()
    for name in ("hanging", "heavy"):
        await until(host, name, lambda view: view.generation > 1)


async def _acts(host: Host) -> None:
    await host.probe("beta", principal="ann")
    await host.allow("allowed-later", principal="ann", reason="old but needed")
    await host.examine("refused", principal="ann")
    await host.act("beta", "restart", principal="ann")
    await host.act("deaf", "disable", principal="ann", reason="it is not needed")


async def _rolled_back(folder: Path, told: Told, *, remember_modern: bool) -> None:
    """A server that was modern answers as a legacy one after the next start of the host."""
    folder.mkdir(parents=True)
    switch = folder / "old"
    choice = f'if [ -e {switch} ]; then exec "$0" "$@" --era legacy; fi; exec "$0" "$@"'
    launch = StdioServer(("/bin/sh", "-c", choice, *scripted()))
    for _ in range(2):
        host = Host(state_dir=folder / "state", record=True, remember_modern=remember_modern)
        host.add_server("rolled-back", launch, allow_legacy=True, **{**QUICK, **NEVER})
        async with host:
            body, _ = await host.metrics()
            told.read_metrics(body.decode())
        switch.touch()
    told.read_record(folder / "state")


async def _fails(kind: type[errors.CallError], call: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            got = await call
    except kind:
        return
    raise AssertionError(f"{got} instead of {kind.__name__}")


async def _in_flight(host: Host, name: str, calls: int = 1) -> None:
    gate = host.core.fleet.get(name).peer.gate  # type: ignore[union-attr]  # it is configured
    await eventually(lambda: gate.in_flight == calls)


def _kill(host: Host, name: str) -> None:
    pid = host.servers[name].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
