"""What operators and alerts read at /metrics."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from observant_host.errors import CallTimeout
from observant_host.telemetry.facade import Finished, Telemetry, TraceContext
from observant_host.telemetry.finished import pair_of
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.metrics import MetricSink
from observant_host.telemetry.vocabulary import (
    CatalogueRefresh,
    ConfigLoaded,
    HostLevel,
    PeerLevel,
    PeerSnapshot,
    PeerStateChanged,
    Request,
    RoutedCall,
)
from tests.telemetry.facts import ALL, Ended

if TYPE_CHECKING:
    from collections.abc import Callable

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def make(*, ratio: float = 1.0) -> tuple[Telemetry, MetricSink]:
    sink = MetricSink(version="0.1")
    return Telemetry(starter=OwnIds(ratio=ratio), sinks=[sink], metrics=sink), sink


async def text_of(sink: MetricSink, accept: str | None = None) -> str:
    sink._renderer._cached.clear()
    return (await sink.render(accept))[0].decode()


def value(text: str, series: str) -> float | None:
    for line in text.splitlines():
        if line.startswith(series + " "):
            return float(line.split()[1])
    return None


def call(telemetry: Telemetry, **fields: object) -> None:
    fact = {"name": "x", "method": "tools/call", "peer": "a", "local_name": "x"} | fields
    with telemetry.operation(RoutedCall(**fact)):  # type: ignore[arg-type]  # fields of the fact
        pass


async def test_counters_that_alerts_read_exist_at_zero_once_a_peer_is_configured() -> None:
    telemetry, sink = make()
    telemetry.peer_configured("a")
    text = await text_of(sink)
    for series in (
        'observant_host_calls_total{fault="host",outcome="timeout",peer="a"}',
        'observant_host_peer_restarts_total{peer="a"}',
        'observant_host_peer_transitions_total{peer="a",to="backoff"}',
        'observant_host_probes_total{outcome="timeout",peer="a"}',
        'observant_host_era_decisions_total{direction="downgrade",peer="a"}',
    ):
        assert value(text, series) == 0.0, series
    assert "legacy_probes_total{" not in text


async def test_a_peer_has_a_series_for_its_own_era_only() -> None:
    telemetry, sink = make()
    telemetry.watch_peers(lambda: [PeerSnapshot(peer="a", state="ready", era="legacy")])
    text = await text_of(sink)
    assert value(text, 'observant_host_peer_era{era="legacy",peer="a"}') == 1.0
    assert text.count("observant_host_peer_era{") == 1


async def test_legacy_probes_are_created_only_where_legacy_is_allowed() -> None:
    telemetry, sink = make()
    telemetry.peer_configured("old", legacy_allowed=True)
    assert (
        value(
            await text_of(sink),
            'observant_host_legacy_probes_total{outcome="modern_evidence",peer="old"}',
        )
        == 0.0
    )


async def test_every_series_of_a_peer_goes_with_it() -> None:
    telemetry, sink = make()
    telemetry.peer_configured("a", legacy_allowed=True)
    telemetry.peer_configured("b")
    for fact in ALL:
        telemetry.count(fact)
    telemetry.level(PeerLevel(peer="a", metric="peer_processes"), 3)
    telemetry.peer_forgotten("a")
    text = await text_of(sink)
    assert 'peer="a"' not in text
    assert 'peer="b"' in text
    telemetry.peer_configured("a")
    call(telemetry)
    series = 'observant_host_calls_total{fault="none",outcome="ok",peer="a"}'
    assert value(await text_of(sink), series) == 1.0


async def test_one_peer_costs_about_sixty_series() -> None:
    telemetry, sink = make()
    before = (await text_of(sink)).count("\n")
    telemetry.peer_configured("a")
    telemetry.watch_peers(
        lambda: [
            PeerSnapshot(
                peer="a",
                state="ready",
                era="modern",
                last_ready_s=1,
                tools=1,
                collisions=0,
                refresh_failing=False,
                processes=1,
                resident_bytes=1,
                cpu_seconds=1,
                open_fds=1,
            )
        ]
    )
    assert (await text_of(sink)).count("\n") - before <= 60


async def test_states_of_all_peers_come_from_one_snapshot() -> None:
    telemetry, sink = make()
    state = "ready"
    telemetry.watch_peers(
        lambda: [PeerSnapshot(peer="a", state=state, era="modern", cause="process")]
    )
    text = await text_of(sink)
    assert value(text, 'observant_host_peer_state{peer="a",state="ready"}') == 1.0
    assert value(text, 'observant_host_peer_state{peer="a",state="unavailable"}') == 0.0
    assert value(text, 'observant_host_peer_era{era="modern",peer="a"}') == 1.0
    assert "observant_host_peer_unavailable{" not in text
    state = "unavailable"
    text = await text_of(sink)
    assert value(text, 'observant_host_peer_state{peer="a",state="unavailable"}') == 1.0
    assert value(text, 'observant_host_peer_unavailable{cause="process",peer="a"}') == 1.0


async def test_a_wish_that_is_not_wished_has_no_series() -> None:
    telemetry, sink = make()
    telemetry.watch_peers(lambda: [PeerSnapshot(peer="a", state="disabled", expected=False)])
    text = await text_of(sink)
    assert "observant_host_peer_expected{" not in text
    assert "observant_host_peer_required{" not in text
    assert "last_downgrade_timestamp_seconds{" not in text


async def test_a_level_fills_in_what_the_snapshot_does_not_know() -> None:
    telemetry, sink = make()
    telemetry.watch_peers(lambda: [PeerSnapshot(peer="a", state="ready")])
    telemetry.level(PeerLevel(peer="a", metric="peer_open_fds"), 12)
    assert value(await text_of(sink), 'observant_host_peer_open_fds{peer="a"}') == 12.0


def test_an_unknown_level_is_a_bug_that_shows() -> None:
    telemetry, _ = make()
    with pytest.raises(KeyError):
        telemetry.level(HostLevel(metric="made_up"), 1)


async def test_a_new_digest_replaces_the_old_one() -> None:
    telemetry, sink = make()
    telemetry.count(CatalogueRefresh(peer="a", trigger="boot", digest="sha256:1"))
    telemetry.count(CatalogueRefresh(peer="a", trigger="boot", digest="sha256:2"))
    telemetry.count(ConfigLoaded(hash="sha256:3", successful=True))
    telemetry.count(ConfigLoaded(hash="", successful=False, problems=1))
    text = await text_of(sink)
    assert 'catalogue_info{digest="sha256:2"} 1.0' in text
    assert "sha256:1" not in text
    assert 'config_info{hash="sha256:3"} 1.0' in text
    assert value(text, "observant_host_config_last_reload_successful") == 0.0


async def test_exemplars_point_at_sampled_traces_only() -> None:
    telemetry, sink = make(ratio=1.0)
    with telemetry.operation(RoutedCall(name="x", method="tools/call", peer="a")) as op:
        pass
    assert f'trace_id="{op.context.trace_hex}"' in await text_of(sink, OPENMETRICS)
    telemetry, sink = make(ratio=0.0)
    call(telemetry)
    assert "trace_id" not in await text_of(sink, OPENMETRICS)


async def test_a_peers_fall_carries_an_exemplar() -> None:
    telemetry, sink = make()
    changed = next(fact for fact in ALL if isinstance(fact, PeerStateChanged))
    place = telemetry.count(changed)
    lines = (await text_of(sink, OPENMETRICS)).splitlines()
    line = next(one for one in lines if one.startswith("observant_host_peer_transitions_total"))
    assert place.trace_hex in line


async def test_tools_get_series_until_the_budget_is_spent() -> None:
    telemetry, sink = make()
    for number in range(2_005):
        call(telemetry, local_name=f"tool{number}")
    text = await text_of(sink)
    assert 'observant_host_tool_calls_total{outcome="ok",peer="a",tool="tool1999"} 1.0' in text
    assert 'observant_host_tool_calls_total{outcome="ok",peer="a",tool="_other"} 5.0' in text
    overflow = 'observant_host_label_overflow_total{metric="observant_host_tool_calls_total"}'
    assert value(text, overflow) == 5.0
    routed = RoutedCall(name="x", method="tools/call", peer="a", local_name="one more")
    sent = Request(peer="a", method="tools/call", era="modern")
    nowhere = TraceContext(1, 1)
    assert telemetry.alike(Finished(routed, nowhere), Finished(sent, nowhere)) is None
    assert value(await text_of(sink), overflow) == 5.0, "nothing was called"
    telemetry.peer_forgotten("a")
    call(telemetry, peer="b", local_name="fresh")
    assert 'tool="fresh"' in await text_of(sink)


async def test_a_call_that_no_server_owns_is_counted_without_a_peer() -> None:
    telemetry, sink = make()
    call(telemetry, peer="", local_name="")
    text = await text_of(sink)
    assert value(text, 'observant_host_calls_total{fault="none",outcome="ok",peer="_none"}') == 1.0
    assert "tool_calls_total{" not in text


async def test_a_failed_call_is_counted_with_its_fault() -> None:
    telemetry, sink = make()
    with (
        pytest.raises(CallTimeout),
        telemetry.operation(RoutedCall(name="x", method="tools/call", peer="a", local_name="x")),
    ):
        raise CallTimeout("late", scope="queue", fault="host")
    text = await text_of(sink)
    assert value(text, 'observant_host_calls_total{fault="host",outcome="timeout",peer="a"}') == 1.0


async def test_a_tools_own_error_is_nobodys_fault() -> None:
    telemetry, sink = make()
    with telemetry.operation(RoutedCall(name="x", method="tools/call", peer="a")) as op:
        op.note(fault="peer")
        op.end_as("tool_error", "tool_error")
    series = 'observant_host_calls_total{fault="none",outcome="tool_error",peer="a"}'
    assert value(await text_of(sink), series) == 1.0


async def test_overhead_is_what_no_request_and_no_queue_took() -> None:
    telemetry, sink = make()
    with telemetry.operation(RoutedCall(name="x", method="tools/call", peer="a")) as op:
        op.note(queued_ms=0.0)
        with telemetry.operation(Request(peer="a", method="tools/call", era="modern")):
            threading.Event().wait(0.02)
    text = await text_of(sink)
    assert (value(text, 'observant_host_overhead_seconds_sum{stage="host"}') or 1) < 0.015
    assert value(text, 'observant_host_overhead_seconds_count{stage="queue"}') == 1.0


@pytest.mark.parametrize("queued_ns", [0, 3_000_000])
@pytest.mark.parametrize("sampled", [True, False])
async def test_a_call_told_in_one_go_is_counted_as_one_by_one(
    queued_ns: int, sampled: bool
) -> None:
    routed = RoutedCall(name="x", method="tools/call", peer="a", local_name="x")
    samples = tuple(
        Finished(fact, TraceContext(1, 1))
        for fact in (routed, Request(peer="a", method="tools/call", era="modern", purpose="call"))
    )
    outer, inner = TraceContext(5, 6, sampled), TraceContext(5, 7, sampled)
    done = Ended(1, outer, inner, duration_ns=9_000_000, queued_ns=queued_ns)
    (_, one), (_, other) = make(), make()
    add = one.alike(*samples)
    assert add is not None
    add(done)
    for each in pair_of(done, *samples):
        other.emit(each)
    texts = [await text_of(sink, OPENMETRICS) for sink in (one, other)]
    seen, wanted = [re.findall(r"^[om].*", text, re.MULTILINE) for text in texts]
    for line, its in zip(seen, wanted, strict=True):
        assert line == its or float(line.split()[1]) == pytest.approx(float(its.split()[1]))
    waited = value("\n".join(seen), 'observant_host_overhead_seconds_sum{stage="queue"}')
    assert waited == pytest.approx(queued_ns / 1e9)


async def test_no_created_series_double_the_others() -> None:
    telemetry, sink = make()
    call(telemetry)
    assert "_created" not in await text_of(sink)
    assert "_created" not in await text_of(sink, OPENMETRICS)


async def test_the_format_follows_the_accept_header() -> None:
    _, sink = make()
    assert (await sink.render(None))[1].startswith("text/plain")
    body, content_type = await sink.render(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


async def test_many_scrapers_cause_one_rendering_off_the_loop() -> None:
    telemetry, sink = make()
    threads: list[str] = []
    original = sink._scrape.collect

    def collect() -> object:
        threads.append(threading.current_thread().name)
        return original()

    snapshots: list[str] = []
    telemetry.watch_peers(lambda: snapshots.append(threading.current_thread().name) or [])
    sink._scrape.collect = collect  # type: ignore[method-assign, assignment]  # to see where it runs
    bodies = await asyncio.gather(*(sink.render(None) for _ in range(20)))
    assert len({body for body, _ in bodies}) == 1
    assert await sink.render(None) == bodies[0]
    assert len(threads) == 1
    assert threads[0] != threading.main_thread().name
    assert snapshots == [threading.main_thread().name]


async def test_a_scraper_that_goes_away_takes_nobody_with_it() -> None:
    _, sink = make()
    leaving = asyncio.ensure_future(sink.render(None))
    staying = asyncio.ensure_future(sink.render(None))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying)[0]
    with pytest.raises(asyncio.CancelledError):
        await leaving


@pytest.fixture
def promtool() -> Callable[[str], subprocess.CompletedProcess[str]]:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")

    def check(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [found, "check", "metrics"],
            input=text,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return check


@pytest.mark.prometheus
async def test_promtool_has_nothing_to_say(
    promtool: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    telemetry, sink = make()
    telemetry.peer_configured("a", legacy_allowed=True)
    telemetry.watch_peers(
        lambda: [
            PeerSnapshot(peer="a", state="unavailable", cause="policy", cpu_seconds=1, processes=1)
        ]
    )
    for fact in ALL:
        telemetry.count(fact)
    text = await text_of(sink)
    result = await asyncio.to_thread(promtool, re.sub(r"(?m)^.*process_.*\n", "", text))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


async def test_calls_of_a_peer_that_was_forgotten_begin_series_anew() -> None:
    telemetry, sink = make()
    call(telemetry)
    call(telemetry, peer="b")
    telemetry.peer_forgotten("a")
    call(telemetry)
    call(telemetry, peer="b")
    text = await text_of(sink)
    assert value(text, 'observant_host_calls_total{fault="none",outcome="ok",peer="a"}') == 1
    assert value(text, 'observant_host_calls_total{fault="none",outcome="ok",peer="b"}') == 2
    assert value(text, 'observant_host_tool_calls_total{outcome="ok",peer="a",tool="x"}') == 1
