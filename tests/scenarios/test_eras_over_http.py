"""Which era a server behind a URL has: each row of the table, with real sockets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.supervision import rotation
from observant_host.telemetry.vocabulary import EraDecide, EraDropped, PeerRestart
from tests.scenarios.http import UNTOLD, add_url, asked
from tests.support.hosts import facts, quick_host, reach, until
from tests.support.http_peer import refusing_port
from tests.support.peers import received
from tests.support.serving import serving

if TYPE_CHECKING:
    from pathlib import Path

MODERN_HEADERS = {"Mcp-Method", "Mcp-Name"}


def headers_of(log: Path, method: str) -> dict[str, str]:
    """Those of the first request of this method, by lower-case name."""
    sent = [message.get("method") for message in received(log)]
    posts = asked(log, "POST")
    return {name.lower(): value for name, value in posts[sent.index(method)]["headers"].items()}


async def test_a_modern_server_is_asked_by_discover_and_never_by_anything_older(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(log=log) as web:
        add_url(host, "m", web.url, allow_legacy=True)
        async with host:
            view = host.servers["m"]
            assert (view.state, view.era, view.version) == ("ready", "modern", "2026-07-28")
            assert (view.transport, view.pid, view.generation) == ("http", None, 1)
            assert (view.layers.process, view.layers.transport) == ("off", "ok")
            assert [one["http_status"] for one in view.evidence] == [200]
            assert (await host.call_tool("echo", {"text": "hi"})).text == "hi"
    assert {one["verb"] for one in asked(log)} == {"POST"}
    assert received(log, "initialize") == []
    assert headers_of(log, "tools/call")["mcp-name"] == "echo"


async def test_an_old_server_that_nobody_allowed_gets_no_initialize_and_no_get(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(era="legacy", log=log) as web:
        add_url(host, "old", web.url)
        async with host:
            first = host.servers["old"]
            assert (first.state, first.cause, first.reason) == (
                "unavailable",
                "policy",
                "ambiguous_error",
            )
            assert "allow_legacy" in first.detail
            for _ in range(3):
                await host.probe("old")
            assert host.servers["old"].generation == 1
    assert {message["method"] for message in received(log)} == {"server/discover"}
    assert {one["verb"] for one in asked(log)} == {"POST"}


@pytest.mark.parametrize(
    ("revision", "said"),
    [("2025-11-25", True), ("2025-06-18", True), ("2025-03-26", False), ("2024-11-05", False)],
)
async def test_an_allowed_old_server_is_served_in_its_revision(
    tmp_path: Path, revision: str, said: bool
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(era="legacy", initialize=f"version:{revision}", log=log) as web:
        add_url(host, "old", web.url, allow_legacy=True)
        async with host:
            view = host.servers["old"]
            assert (view.state, view.era, view.version) == ("ready", "legacy", revision)
            assert (await host.call_tool("echo", {"text": "hi"})).text == "hi"
    first = headers_of(log, "initialize")
    assert not {name for name in first if name.startswith("mcp-")}
    later = headers_of(log, "tools/call")
    assert later.get("mcp-protocol-version") == (revision if said else None)
    assert later["mcp-session-id"]
    assert "mcp-method" not in later
    methods = [message["method"] for message in received(log)]
    assert methods[:3] == ["server/discover", "initialize", "notifications/initialized"]
    assert [one["verb"] for one in asked(log)][-1] == "DELETE"


@pytest.mark.parametrize(
    ("fault", "reason", "cause"),
    [
        ("401", "auth_required", "auth"),
        ("403", "forbidden", "auth"),
        ("408", "http_unavailable", "network"),
        ("429", "rate_limited", "network"),
        ("500", "http_unavailable", "network"),
        ("503", "http_unavailable", "network"),
        ("reset", "unreachable", "network"),
    ],
)
async def test_a_cause_is_no_evidence_and_never_leads_to_initialize(
    tmp_path: Path, fault: str, reason: str, cause: str
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(era="legacy", discover_status=fault, log=log) as web:
        add_url(host, "s", web.url, allow_legacy=True, reprobe_max_s=60, restart_initial_s=60)
        async with host:
            view = host.servers["s"]
            assert (view.state, view.cause, view.reason) == ("unavailable", cause, reason)
    assert received(log, "initialize") == []
    assert {one["verb"] for one in asked(log)} == {"POST"}


@pytest.mark.parametrize("fault", ["400", "404:html", "405", "200:{}", "400:nothing here"])
async def test_an_answer_that_proves_no_era_is_a_candidate_where_it_is_allowed(
    tmp_path: Path, fault: str
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(era="legacy", discover_status=fault, log=log) as web:
        add_url(host, "s", web.url, allow_legacy=True)
        async with host:
            view = host.servers["s"]
            assert (view.state, view.era) == ("ready", "legacy")
            assert view.evidence[0]["outcome"] == "http_candidate"
    assert len(received(log, "initialize")) == 1


async def test_a_silent_server_is_an_outage_and_not_old(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(discover="silent", log=log) as web:
        add_url(
            host,
            "s",
            web.url,
            allow_legacy=True,
            probe_timeout_s=0.3,
            reprobe_max_s=60,
            restart_initial_s=60,
        )
        async with host:
            view = host.servers["s"]
            assert (view.state, view.cause, view.reason) == (
                "unavailable",
                "network",
                "unreachable",
            )
    assert received(log, "initialize") == []


async def test_a_login_that_is_wanted_is_asked_for_once_and_not_in_a_loop(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(token="right", log=log) as web, serving() as other:
        add_url(host, "s", web.url, headers={"Authorization": "Bearer wrong"})
        add_url(host, "ok", other.url)
        async with host:
            assert host.servers["s"].reason == "auth_required"
            for _ in range(5):  # time passes: far more than every backoff of this host
                await host.call_tool("echo", {"text": "x"})
                await host.probe("ok")
            assert len(asked(log)) == 1
            await host.probe("s")
            assert len(asked(log)) == 2


async def test_a_pause_that_a_server_asks_for_is_the_least_that_passes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(discover_status="429", fail_first=1, retry_after=1, log=log) as web:
        add_url(host, "s", web.url)
        async with host:
            view = host.servers["s"]
            assert view.reason == "rate_limited"
            assert "pause of 1 s" in view.detail
            await reach(host, "s", "ready")
    first, second = (one["t"] for one in asked(log)[:2])
    assert second - first >= 1.0


async def test_a_redirect_to_another_origin_is_refused_naming_both(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with (
        refusing_port() as port,
        serving(redirect=307, location=f"http://127.0.0.1:{port}/mcp", log=log) as web,
    ):
        add_url(host, "s", web.url, allow_legacy=True)
        async with host:
            view = host.servers["s"]
            assert (view.cause, view.reason) == ("config", "http_unavailable")
            assert f"127.0.0.1:{port}" in view.detail
            assert f"127.0.0.1:{web.port}" in view.detail
    assert received(log, "initialize") == []


async def test_a_server_of_http_sse_is_found_after_both_posts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(old_sse=True, era="legacy", log=log) as web:
        add_url(host, "old", web.url, allow_legacy=True)
        async with host:
            view = host.servers["old"]
            assert (view.state, view.era, view.transport) == ("ready", "legacy", "sse")
            steps = [one["step"] for one in view.evidence]
            assert steps == ["discover", "initialize", "get_sse", "initialize"]
            assert (await host.call_tool("echo", {"text": "hi"})).text == "hi"
    assert [one["verb"] for one in asked(log)][:3] == ["POST", "POST", "GET"]


@pytest.mark.parametrize("revisions", [["2025-11-25"], ["2025-06-18", "2025-03-26"]])
async def test_http_sse_is_not_tried_where_its_revision_is_not_allowed(
    tmp_path: Path, revisions: list[str]
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(old_sse=True, era="legacy", log=log) as web:
        add_url(host, "old", web.url, allow_legacy=revisions, restart_initial_s=60)
        async with host:
            assert host.servers["old"].reason == "legacy_probe_error"
    assert {one["verb"] for one in asked(log)} == {"POST"}


async def test_transport_http_never_gets_and_transport_sse_never_posts_to_the_url(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    host, _ = quick_host()
    async with (
        serving(old_sse=True, era="legacy", log=first) as one,
        serving(old_sse=True, era="legacy", log=second) as two,
    ):
        add_url(host, "http", one.url, transport="http", allow_legacy=True, restart_initial_s=60)
        add_url(host, "sse", two.url, transport="sse", allow_legacy=["2024-11-05"])
        async with host:
            assert host.servers["http"].state == "unavailable"
            view = host.servers["sse"]
            assert (view.state, view.generation, view.transport) == ("ready", 1, "sse")
    assert {one["verb"] for one in asked(first)} == {"POST"}
    assert asked(second)[0]["verb"] == "GET"
    assert {one["path"].partition("?")[0] for one in asked(second, "POST")} == {"/messages"}
    assert received(second, "server/discover") == []


async def test_http_sse_with_an_allowance_for_another_revision_says_which_one_is_missing(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(old_sse=True, era="legacy", log=log) as web:
        add_url(host, "sse", web.url, transport="sse", allow_legacy=["2025-11-25"])
        async with host:
            view = host.servers["sse"]
            assert view.reason == "legacy_unsupported_revision"
            assert 'Add "2024-11-05" to `allow_legacy` in [servers.sse]' in view.detail
    assert asked(log) == []


async def test_http_sse_without_a_standing_allowance_is_not_even_connected(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(old_sse=True, era="legacy", log=log) as web:
        add_url(
            host,
            "sse",
            web.url,
            transport="sse",
            allow_legacy=True,
            legacy_fingerprint="sha256:" + "0" * 64,
        )
        async with host:
            view = host.servers["sse"]
            assert (view.state, view.cause, view.reason) == (
                "unavailable",
                "policy",
                "allowance_mismatch",
            )
            assert asked(log) == []
            assert (await host.allow("sse", reason="moved", principal="ann")).state == "ready"


async def test_an_archive_that_crashed_loses_its_era_before_it_is_asked_again(
    tmp_path: Path,
) -> None:
    log, again = tmp_path / "log", tmp_path / "again"
    host, told = quick_host()
    async with serving(era="legacy", log=log) as web:
        add_url(host, "archive", web.url, allow_legacy=True)
        async with host:
            assert host.servers["archive"].era == "legacy"
            await web.kill()
            with pytest.raises(Exception, match="archive"):
                await host.call_tool("echo", {"text": "x"})
            down = await until(host, "archive", lambda view: view.reason == "unreachable")
            assert (down.cause, down.era) == ("network", "unknown")
            async with serving(era="legacy", port=web.port, log=again):
                await reach(host, "archive", "ready")
                assert (await host.call_tool("echo", {"text": "back"})).text == "back"
    methods = [message["method"] for message in received(again)]
    assert methods[:2] == ["server/discover", "initialize"]
    order = [
        type(one.fact).__name__
        for one in told
        if isinstance(one.fact, EraDropped | PeerRestart)
        or (isinstance(one.fact, EraDecide) and one.fact.trigger == "restart")
    ]
    assert order[:3] == ["EraDropped", "PeerRestart", "EraDecide"]
    assert facts(told, PeerRestart)[0].reason == "connection_lost"
    assert facts(told, EraDropped)[0].era == "legacy"


async def test_a_url_that_was_modern_is_refused_as_old_until_a_person_allows_it(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host(state_dir=tmp_path / "state")
    async with serving(capabilities=UNTOLD) as web:
        add_url(host, "s", web.url, allow_legacy=True)
        async with host:
            assert host.servers["s"].era == "modern"
            await web.kill()
            async with serving(era="legacy", port=web.port, log=log):
                view = await _came_back(host)
                assert (view.cause, view.reason) == ("policy", "was_modern")
                assert received(log, "initialize") == []
                view = await host.allow("s", reason="rolled back", principal="ann")
                assert (view.state, view.era) == ("ready", "legacy")
                decided = await host.explain("s")
                assert decided[-1]["direction"] == "downgrade"
    assert len(received(log, "initialize")) == 1


async def _came_back(host: Any) -> Any:
    with pytest.raises(Exception, match=r"s gave no result|s was sent nothing|the server answered"):
        await host.call_tool("echo", {"text": "x"})
    return await until(host, "s", lambda view: view.reason == "was_modern")


@pytest.mark.parametrize(
    ("endpoint", "cause", "said"),
    [
        ("http://127.0.0.1:1/messages", "config", "http://127.0.0.1:1"),
        ("file:///etc/passwd", "config", "file:"),
    ],
)
async def test_an_endpoint_elsewhere_is_refused_and_the_server_stays_supervised(
    tmp_path: Path, endpoint: str, cause: str, said: str
) -> None:
    host, _ = quick_host()
    async with serving(era="legacy", old_sse=True, endpoint=endpoint, log=tmp_path / "log") as web:
        add_url(host, "old", web.url, allow_legacy=True)
        async with host:
            view = await reach(host, "old", "unavailable")
            assert (view.cause, "bug" in view.detail) == (cause, False)
            assert said in view.detail
            await host.probe("old")
            assert host.servers["old"].state == "unavailable"
    assert received(tmp_path / "log", "tools/list") == []


async def test_a_rotated_token_is_noticed_without_asking_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "LOOK_S", 0.05)
    log, token = tmp_path / "log", tmp_path / "token"
    token.write_text("wrong")
    shown = (
        f"import json; token = open({str(token)!r}).read();"
        "print(json.dumps({'headers': {'Authorization': 'Bearer ' + token}, 'expires_in_s': 1}))"
    )
    host, _ = quick_host()
    async with serving(token="right", log=log) as web:
        add_url(host, "s", web.url, headers_command=[sys.executable, "-c", shown])
        async with host:
            assert host.servers["s"].reason == "auth_required"
            refused = len(asked(log))
            token.write_text("right")
            view = await reach(host, "s", "ready")
            assert view.cause is None
    assert refused <= 2
    assert len(asked(log)) <= refused + 3  # discover, listen, list
