"""Where requests over HTTP go: redirects, proxies, users in URLs, certificates, what is no URL."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from observant_host.errors import TransportError
from tests.support.http_peer import Exchange, HttpPeer, refusing_port
from tests.transports.http_asking import lost, ok
from tests.transports.http_subjects import Fixed, Making, modern
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from pathlib import Path


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
