"""What goes out over HTTP, to whom, and what it costs the others."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import HttpFailure, TransportError
from tests.support.http_peer import Exchange, HttpPeer, answer, refusing_port
from tests.support.processes import eventually
from tests.transports.http_subjects import MODERN, Fixed, Making, legacy, modern, note
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.receivers import Recorder


async def lost(recorder: Any, request_id: int) -> HttpFailure:
    error = await recorder.loss_of(request_id)
    assert isinstance(error, HttpFailure)
    return error


async def ok(exchange: Exchange) -> None:
    if exchange.seen.verb != "POST":
        await exchange.empty(405)
    elif "id" in exchange.seen.message:
        await exchange.result()
    else:
        await exchange.empty(202)


async def test_a_modern_request_carries_its_metadata_and_nothing_legacy(making: Making) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        mirrored = (("Mcp-Param-Region", "=?base64?w7Y=?="),)
        transport.send(modern(1, name="search", mirrored=mirrored), expires=FAR)
        await recorder.answer_to(1)
    (seen,) = peer.seen
    headers = seen.headers
    assert (seen.verb, headers["content-type"]) == ("POST", "application/json")
    assert headers["accept"] == "application/json, text/event-stream"
    assert headers["mcp-protocol-version"] == MODERN
    assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "search")
    assert headers["mcp-param-region"] == "=?base64?w7Y=?="
    assert headers["accept-encoding"] == "identity"
    assert headers["user-agent"].startswith("observant-host/")
    assert "mcp-session-id" not in headers
    assert "cookie" not in headers


async def test_long_lists_may_come_compressed(making: Making) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1, "tools/list"), expires=FAR)
        await recorder.answer_to(1)
    assert peer.seen[0].headers["accept-encoding"] == "gzip, deflate"


async def test_a_legacy_life_sends_its_session_and_version_and_nothing_modern(
    making: Making,
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.seen.method == "initialize":
            await exchange.result(Mcp_Session_Id="s-1")
        else:
            await ok(exchange)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(legacy(1, "initialize"), expires=FAR)
        await recorder.answer_to(1)
        transport.send(note(version="2025-11-25"), expires=FAR)
        transport.send(legacy(2, name="search", version="2025-11-25"), expires=FAR)
        await recorder.answer_to(2)
        await peer.until(lambda peer: len(peer.seen) == 3)
        await transport.close()
    first, *others, last = peer.seen
    assert "mcp-session-id" not in first.headers
    assert "mcp-protocol-version" not in first.headers
    for seen in (*others, last):
        assert seen.headers["mcp-session-id"] == "s-1"
        assert seen.headers["mcp-protocol-version"] == "2025-11-25"
        assert not {"mcp-method", "mcp-name"} & set(seen.headers)
    assert last.verb == "DELETE"


async def test_requests_do_not_wait_for_each_other(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.seen.message["params"].get("slow"):
            await peer.until(lambda peer: len(peer.seen) == 11)
        await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(10):
            transport.send(modern(number, params={"slow": True}), expires=FAR)
        transport.send(modern(10), expires=FAR)
        await recorder.frame_count(11)
    assert recorder.messages[0]["id"] == 10
    assert peer.connections == 11


async def test_a_connection_is_used_again(making: Making) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(5):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
    assert peer.connections == 1
    assert [seen.turn for seen in peer.seen] == [1, 2, 3, 4, 5]


async def test_an_idle_connection_that_the_server_closed_is_not_used(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.result()
        exchange.cut()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(20):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
            await peer.until(lambda peer: all(gone.is_set() for gone in peer.gone.values()))
    assert recorder.lost == []
    assert peer.connections == 20


async def test_a_request_that_lost_the_race_for_a_connection_is_not_sent_again(
    making: Making,
) -> None:
    """Nobody can know whether it was executed; but the next ones no longer run the same risk."""

    async def behave(exchange: Exchange) -> None:
        if exchange.seen.turn > 1:
            exchange.cut()
        else:
            await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await recorder.answer_to(1)
        transport.send(modern(2), expires=FAR)
        failure = await lost(recorder, 2)
        assert (failure.kind, failure.sent) == ("reset", True)
        for number in range(3, 8):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
    assert [seen.message["id"] for seen in peer.seen] == [1, 2, 3, 4, 5, 6, 7]


async def only_once(exchange: Exchange) -> None:
    """Drop each connection at its second request."""
    if exchange.seen.turn > 1:
        exchange.cut()
    else:
        await ok(exchange)


def over(count: int) -> Callable[[Recorder], bool]:
    return lambda recorder: len(recorder.messages) + len(recorder.lost) == count


async def test_a_server_that_breaks_every_reused_connection_gets_new_ones_only(
    making: Making,
) -> None:
    """Whatever time passes between them: after the second break it is how the server is."""
    async with HttpPeer(only_once) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(20):
            transport.send(modern(number), expires=FAR)
            await recorder.until(over(number + 1))
            making.clock.skipped += 100 * (number % 2)  # an idle one is soon too old to be used
    assert len(recorder.lost) == 2


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "ping"])
async def test_what_changes_nothing_is_sent_again_where_a_reused_connection_broke(
    making: Making, method: str
) -> None:
    async with HttpPeer(only_once) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(5):
            transport.send(modern(number, method), expires=FAR)
            await recorder.answer_to(number)
    assert recorder.lost == []
    assert [seen.message["id"] for seen in peer.seen] == [0, 1, 1, 2, 3, 4]


async def test_what_changes_nothing_is_sent_again_once_only(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        if len(peer.seen) > 1:
            exchange.cut()
        else:
            await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1, "tools/list"), expires=FAR)
        await recorder.answer_to(1)
        transport.send(modern(2, "tools/list"), expires=FAR)
        assert (await lost(recorder, 2)).kind == "reset"
    assert [seen.message["id"] for seen in peer.seen] == [1, 2, 2]


async def test_initialize_is_not_risked_on_a_connection_that_served_before(
    making: Making,
) -> None:
    async with HttpPeer(only_once) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1, "server/discover"), expires=FAR)
        await recorder.answer_to(1)
        transport.send(legacy(2, "initialize"), expires=FAR)
        await recorder.answer_to(2)
    assert [(seen.method, seen.turn) for seen in peer.seen] == [
        ("server/discover", 1),
        ("initialize", 1),
    ]


async def test_a_refused_connection_costs_one_request_and_proves_that_nothing_was_sent(
    making: Making,
) -> None:
    async with refusing_port() as port:
        transport = making.http(url=f"http://127.0.0.1:{port}/mcp?key=s3cret")
        recorder = await opened(transport)
        sent = transport.send(modern(1), expires=FAR)
        failure = await lost(recorder, 1)
    assert (failure.kind, failure.sent, failure.status) == ("refused", False, None)
    assert not sent.started
    assert "cannot be reached" in str(failure)
    assert "s3cret" not in f"{failure} {failure.url}"


async def test_a_host_name_that_nobody_knows_is_said_to_be_one(making: Making) -> None:
    transport = making.http(url="http://no-such-host.invalid/mcp")
    recorder = await opened(transport)
    transport.send(modern(1), expires=FAR)
    failure = await lost(recorder, 1)
    assert (failure.kind, failure.sent) == ("dns", False)


async def test_connecting_is_bounded_and_its_deadline_observed(making: Making) -> None:
    """A listener whose queue is full: the connection is neither made nor refused."""
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        await asyncio.sleep(0.05)
        port = listener.getsockname()[1]
        transport = making.http(url=f"http://127.0.0.1:{port}/mcp", connect_timeout_s=0.3)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await lost(recorder, 1)
        for filler in fillers:
            filler.close()
    assert (failure.kind, failure.sent) == ("timeout", False)
    (expired,) = [f for f in making.told if type(f.fact).__name__ == "DeadlineExpired"]
    assert expired.fact.scope == "connect"


async def test_a_request_waits_as_long_as_its_caller_does(making: Making) -> None:
    """No timeout of the transport's own: a silent server is the caller's to give up."""
    async with HttpPeer(lambda exchange: exchange.gone()) as peer:
        transport = making.http(url=peer.url, connect_timeout_s=1.0)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await peer.until(lambda peer: peer.seen)
        await asyncio.sleep(1.2)
        assert recorder.lost == []
        assert transport.cancel(1)
        await peer.until(lambda peer: peer.gone[1].is_set())
    assert recorder.frames == []
    assert recorder.lost == []


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_on_the_same_origin_is_followed_with_everything(
    making: Making, status: int
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.seen.path == "/mcp":
            await exchange.empty(status, Location="/mcp/?a=1#here")
        else:
            await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, credentials=Fixed(Authorization="Bearer token-1"))
        recorder = await opened(transport)
        for number in (1, 2):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
    first, second, *rest = peer.seen
    assert (second.verb, second.path, second.body) == ("POST", "/mcp/?a=1", first.body)
    assert second.headers == first.headers
    assert [seen.path for seen in rest] == (
        ["/mcp/?a=1"] if status == 308 else ["/mcp", "/mcp/?a=1"]
    )
    assert peer.connections == 1


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_turn_a_post_into_a_get_is_an_error_that_names_its_target(
    making: Making, status: int
) -> None:
    async with HttpPeer(lambda exchange: exchange.empty(status, Location="/other")) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await lost(recorder, 1)
        assert failure.kind == "redirect"
        assert f"{peer.origin}/other" in str(failure)
        assert "servers.sample.url" in str(failure)
    assert peer.methods == ["tools/call"]


async def test_a_redirect_to_another_origin_is_refused_and_gets_no_header(making: Making) -> None:
    async with HttpPeer(ok) as other:

        async def behave(exchange: Exchange) -> None:
            await exchange.empty(307, Location=f"{other.url}?token=abc")

        async with HttpPeer(behave) as peer:
            transport = making.http(url=peer.url, credentials=Fixed(Authorization="Bearer t"))
            recorder = await opened(transport)
            transport.send(modern(1), expires=FAR)
            failure = await lost(recorder, 1)
    assert failure.kind == "redirect"
    assert peer.origin in str(failure)
    assert other.origin in str(failure)
    assert "abc" not in str(failure)
    assert other.seen == []


async def test_a_circle_of_redirects_is_cut(making: Making) -> None:
    async with HttpPeer(lambda exchange: exchange.empty(307, Location="/mcp")) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await lost(recorder, 1)
    assert (failure.kind, len(peer.seen)) == ("redirect", 6)


@pytest.mark.parametrize("location", ["", "http://[bad/", "file:///etc/passwd"])
async def test_a_redirect_to_nowhere_is_an_error(making: Making, location: str) -> None:
    async with HttpPeer(lambda exchange: exchange.empty(301, Location=location)) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        assert (await lost(recorder, 1)).kind == "redirect"


async def test_a_proxy_is_used_for_others_and_never_for_loopback(making: Making) -> None:
    async with HttpPeer(ok) as proxy, HttpPeer(ok) as peer:
        environment = {"http_proxy": f"http://user:pass-word@127.0.0.1:{proxy.port}"}
        direct = making.http(url=peer.url, environment=environment)
        recorder = await opened(direct)
        direct.send(modern(1), expires=FAR)
        await recorder.answer_to(1)
        assert proxy.seen == []
        through = making.http(url="http://server.invalid/mcp", environment=environment)
        recorder = await opened(through)
        through.send(modern(1), expires=FAR)
        await recorder.answer_to(1)
    assert proxy.seen[0].path == "http://server.invalid/mcp"
    assert proxy.seen[0].headers["proxy-authorization"] == "Basic dXNlcjpwYXNzLXdvcmQ="


async def test_a_proxy_that_is_down_is_no_proof_of_anything_sent(making: Making) -> None:
    async with refusing_port() as port:
        environment = {"HTTPS_PROXY": f"http://127.0.0.1:{port}"}
        transport = making.http(url="https://server.invalid/mcp", environment=environment)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await lost(recorder, 1)
    assert (failure.kind, failure.sent) == ("refused", False)


async def test_a_user_in_the_url_becomes_a_header_and_is_never_shown(making: Making) -> None:
    async with HttpPeer(lambda exchange: exchange.empty(500)) as peer:
        url = peer.url.replace("//", "//user:pass-word@")
        transport = making.http(url=url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await lost(recorder, 1)
    assert peer.seen[0].headers["authorization"] == "Basic dXNlcjpwYXNzLXdvcmQ="
    assert "pass-word" not in f"{failure} {failure.url}"


async def test_a_certificate_is_checked_and_a_ca_bundle_of_ones_own_trusted(
    making: Making, certificate: Path
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with HttpPeer(ok, tls=tls, host="127.0.0.1") as peer:
        refused = making.http(url=peer.url)
        recorder = await opened(refused)
        refused.send(modern(1), expires=FAR)
        failure = await lost(recorder, 1)
        assert (failure.kind, failure.sent) == ("tls", False)
        assert peer.seen == []
        trusting = making.http(url=peer.url, ca_bundle=str(certificate))
        recorder = await opened(trusting)
        for number in (1, 2):
            trusting.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
    assert [seen.connection for seen in peer.seen] == [1, 1]


@pytest.mark.parametrize("content", [None, b"no certificate\n"])
async def test_a_ca_bundle_that_cannot_be_read_is_named(
    making: Making, tmp_path: Path, content: bytes | None
) -> None:
    bundle = tmp_path / "ca.pem"
    if content is not None:
        bundle.write_bytes(content)
    transport = making.http(url="https://server.invalid/mcp", ca_bundle=str(bundle))
    with pytest.raises(TransportError, match=r"servers\.sample\.ca_bundle: .*ca\.pem"):
        await opened(transport)


@pytest.mark.parametrize("url", ["ftp://server/mcp", "http:///mcp", "mcp", "http://[bad/"])
async def test_a_url_that_is_none_is_refused(making: Making, url: str) -> None:
    with pytest.raises(TransportError, match=r"servers\.sample\.url"):
        await opened(making.http(url=url))


async def test_a_large_message_goes_out_whole(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.json(answer(exchange.id, len(exchange.seen.body)))

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        out = modern(1, params={"text": "x" * (3 << 20)})
        transport.send(out, expires=FAR)
        assert (await recorder.answer_to(1))["result"] == len(out.frame)
        assert json.loads(peer.seen[0].body) == json.loads(out.frame)


async def test_long_streams_and_notifications_take_no_connection_from_calls(
    making: Making,
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.seen.method in ("subscriptions/listen", "hold"):
            await exchange.gone()
        else:
            await ok(exchange)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, call_connections=1)
        recorder = await opened(transport)
        for number in range(5):
            transport.send(modern(number, "subscriptions/listen"), expires=FAR)
        await peer.until(lambda peer: len(peer.seen) == 5)
        transport.send(modern(10), expires=FAR)
        await recorder.answer_to(10)
        transport.send(modern(11, "hold"), expires=FAR)
        await peer.until(lambda peer: "hold" in peer.methods)
        transport.send(note("notifications/cancelled"), expires=FAR)
        await peer.until(lambda peer: "notifications/cancelled" in peer.methods)


async def test_a_message_whose_time_is_over_before_it_got_a_connection_is_never_sent(
    making: Making,
) -> None:
    release = asyncio.Event()

    async def behave(exchange: Exchange) -> None:
        await release.wait()
        await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, call_connections=1)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await peer.until(lambda peer: peer.seen)
        waiting = transport.send(modern(2), expires=making.clock.monotonic() + 60)
        making.clock.skipped += 61
        transport.send(modern(3), expires=FAR)
        release.set()
        await recorder.answer_to(3)
        assert not waiting.started
        assert waiting.withdraw()
    assert [seen.message["id"] for seen in peer.seen] == [1, 3]
    assert recorder.lost == []


async def test_the_descriptors_of_a_life_are_given_back(making: Making) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await recorder.answer_to(1)
        await transport.close()
        await eventually(lambda: all(gone.is_set() for gone in peer.gone.values()))
