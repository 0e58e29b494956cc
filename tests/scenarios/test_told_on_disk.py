"""What is left on disk and in the log of a call and of a refused downgrade: trees and lines."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from observant_host import Host, StdioServer, errors
from observant_host.config import HostConfig, TelemetrySettings
from observant_host.incidents.record import read_decisions, read_timeline, read_trace
from tests.support.hosts import NEVER_AGAIN, QUICK, add
from tests.support.peers import scripted

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.incidents.record import TraceNode


def tree(nodes: list[TraceNode]) -> list[object]:
    """Names, each followed by the list of what is in it."""
    found: list[object] = []
    for node in nodes:
        found.append(node.span.name)
        if node.children:
            found.append(tree(node.children))
    return found


async def test_a_call_is_one_trace_of_two_spans_and_no_log_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    host = Host(state_dir=tmp_path, record=True)
    add(host, "s", {"tools": "echo,rpc_error"})
    async with host:
        caplog.set_level(logging.INFO)
        caplog.clear()
        done = await host.call_tool("echo", {"text": "x"})
        assert "call" not in caplog.text
        for _ in range(8):
            with pytest.raises(errors.RpcError):
                await host.call_tool("rpc_error")
    assert tree(read_trace([tmp_path], done.trace_id)) == [
        "observant_host.call",
        ["tools/call echo"],
    ]
    lines = [line for line in caplog.messages if "'call_failed'" in line]
    assert len(lines) == 6  # five, and one that counts the others
    assert "suppressed=3" in lines[-1]


@pytest.mark.parametrize("wished", [True, False])
async def test_arguments_are_in_the_span_of_a_call_where_that_is_wished_and_in_no_log_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wished: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    config = HostConfig(telemetry=TelemetrySettings(capture_arguments=wished))
    host = Host(state_dir=tmp_path, record=True, config=config)
    add(host, "s", {"tools": "echo,rpc_error"})
    async with host:
        for _ in range(3):
            await host.call_tool("echo", {"text": "the tides", "api_key": "4711"})
        with pytest.raises(errors.RpcError):
            await host.call_tool("rpc_error", {"text": "the tides"})
        with pytest.raises(errors.InvalidCall):
            await host.call_tool("nobody", {"text": "the tides"})
    kept = [line for path in (tmp_path / "traces").iterdir() for line in path.open()]
    told = r'{"stringValue":"{\"text\":\"the tides\",\"api_key\":\"***\"}"}'
    assert sum(line.count(told) for line in kept) == (3 if wished else 0)
    assert sum(line.count("the tides") for line in kept) == (4 if wished else 0)
    assert "the tides" not in caplog.text
    assert "4711" not in "".join(kept)


async def test_a_refused_downgrade_is_a_tree_a_link_to_the_decision_before_and_one_line_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    switch, state = tmp_path / "old", tmp_path / "state"
    choice = f'if [ -e {switch} ]; then exec "$0" "$@" --era legacy; fi; exec "$0" "$@"'
    launch = StdioServer(("/bin/sh", "-c", choice, *scripted(tools="echo,kill")))
    host = Host(state_dir=state, record=True)
    host.add_server("s", launch, allow_legacy=True, **{**QUICK, **NEVER_AGAIN})
    async with host:
        switch.touch()
        with pytest.raises(errors.Unavailable):
            await host.call_tool("kill")
        await host.probe("s")
        assert host.servers["s"].reason == "was_modern"
    first, refused = read_decisions([state], server="s")
    assert (first["to"], refused["from"], refused["reason"]) == ("modern", "modern", "was_modern")
    assert tree(read_trace([state], refused["trace_id"])) == [
        "observant_host.peer.restart",
        [
            "observant_host.peer.start",
            [
                "observant_host.transport.connect",
                "observant_host.era.decide",
                ["server/discover"],
            ],
        ],
    ]
    links = {
        (span.name, attributes["observant_host.link.type"]): trace_id
        for span in read_timeline([state], server="s")
        for trace_id, _, attributes in span.links
        if span.name != "observant_host.peer.state"
    }
    assert links["observant_host.era.decide", "previous_decision"] == first["trace_id"]
    assert links["observant_host.peer.restart", "previous_generation"] == first["trace_id"]
    killed = links["observant_host.peer.restart", "caused_by"]
    assert tree(read_trace([state], killed)) == ["observant_host.call", ["tools/call kill"]]
    unsaid = {"observant_host.name.decide", "observant_host.telemetry.lost"}  # nothing was lost
    told = [span for span in read_timeline([state]) if span.name not in unsaid]
    events = {
        "observant_host.era.decide": "era_decided",
        "observant_host.era.drop": "era_dropped",
        "observant_host.peer.state": "state_changed",
        "observant_host.peer.restart": "peer_restart",
        "observant_host.operator": "operator_act",
        "observant_host.host.lifecycle": "host_lifecycle",
        "observant_host.loop.stalled": "loop_stalled",
    }
    for span in told:
        line = [m for m in caplog.messages if span.span_id in m and events[span.name] in m]
        assert len(line) == 1, span.name
