"""The pure parts of the HTTP transports: proxies, codings, times, sessions, pauses."""

from __future__ import annotations

import zlib

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from observant_host.errors import TransportError
from observant_host.transports.http.reopening import (
    MAX_PAUSE_S,
    MIN_PAUSE_S,
    is_fruitful,
    pause_s,
)
from observant_host.transports.http.session import is_lost
from observant_host.transports.web.encodings import PIECE_BYTES, Inflate, Undecodable
from observant_host.transports.web.failures import kind_of, page_title, shown
from observant_host.transports.web.inlet import bare
from observant_host.transports.web.proxies import bypassed, is_loopback, proxy_for
from observant_host.transports.web.retry_after import MAX_S, retry_after_s

NOW_NS = 1_900_000_000_000_000_000


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "http://a.example/", None),
        ({"http_proxy": "http://p:1"}, "http://a.example/", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "http://a.example/", "http://p:1"),
        (
            {"http_proxy": "http://p:1", "HTTP_PROXY": "http://q:1"},
            "http://a.example/",
            "http://p:1",
        ),
        ({"http_proxy": "http://p:1"}, "https://a.example/", None),
        ({"https_proxy": "p.example:3128"}, "https://a.example/", "http://p.example:3128"),
        ({"ALL_PROXY": "http://p:1"}, "https://a.example/", "http://p:1"),
        ({"all_proxy": "http://p:1", "no_proxy": "*"}, "https://a.example/", None),
        ({"all_proxy": "http://p:1"}, "http://localhost:8000/", None),
        ({"all_proxy": "http://p:1"}, "http://[::1]:8000/", None),
        ({"all_proxy": "http://p:1"}, "http://127.1.2.3/", None),
        ({"all_proxy": ""}, "http://a.example/", None),
    ],
)
def test_a_proxy_is_found_as_everybody_finds_it(
    environment: dict[str, str], url: str, proxy: str | None
) -> None:
    found = proxy_for(URL(url), environment)
    assert (None if found is None else str(found).rstrip("/")) == proxy


@pytest.mark.parametrize("value", ["socks5://me:pw@p:1", "https://", "ftp://p", "http://[bad"])
def test_a_proxy_that_cannot_be_used_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(TransportError, match="proxy that the environment names") as refused:
        proxy_for(URL("https://a.example/"), {"https_proxy": value})
    assert value not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "no_proxy", "expected"),
    [
        ("a.example", "", False),
        ("a.example", "a.example", True),
        ("A.Example.", "a.example", True),
        ("b.a.example", "a.example", True),
        ("b.a.example", ".a.example", True),
        ("b.a.example", "*.a.example", True),
        ("ba.example", "a.example", False),
        ("a.example", "a.example:443", True),
        ("a.example", "a.example:80", False),
        ("a.example", "b.example, a.example", True),
        ("a.example", "b.example a.example", True),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("a.example", "10.0.0.0/8", False),
        ("10.1.2.3", "10.1.2.3:443", True),
        ("fe80::1", "fe80::/10", True),
        ("fe80::1", "[fe80::1]", True),
        ("fe80::1", "[fe80::1]:443", True),
        ("fe80::1", "[fe80::1]:80", False),
        ("fe80::1", "fe80::1", True),
        ("a.example", "*", True),
        ("a.example", "*,.,", True),
        ("a.example", ".", False),
    ],
)
def test_no_proxy_means_names_addresses_and_networks(
    host: str, no_proxy: str, expected: bool
) -> None:
    assert bypassed(host, 443, no_proxy) is expected


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "::1"])
def test_loopback_is_known_in_all_its_names(host: str) -> None:
    assert is_loopback(host)
    assert not is_loopback(f"{host}.example")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("1.5", 1.5),
        ("9" * 18, MAX_S),
        ("-1", None),
        ("1e3", None),
        ("", None),
        (None, None),
        ("never", None),
        ("Sun, 17 Mar 2030 17:47:00 GMT", 20.0),
        ("Sun, 17 Mar 2030 17:46:00 GMT", 0.0),
        ("Sun, 17 Mar 2099 17:46:00 GMT", MAX_S),
        ("Sun, 99 Mar 2030 17:46:00 GMT", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, wall_ns=NOW_NS) == seconds


@given(st.binary(max_size=3 * PIECE_BYTES), st.integers(1, 5000), st.sampled_from([31, 15, -15]))
def test_whatever_was_coded_is_decoded_however_it_is_cut(
    data: bytes, size: int, window: int
) -> None:
    compress = zlib.compressobj(1, zlib.DEFLATED, window)
    coded = compress.compress(data) + compress.flush()
    inflate = Inflate("gzip" if window == 31 else "deflate")
    found = bytearray()
    for at in range(0, len(coded), size):
        inflate.feed(coded[at : at + size])
        while piece := inflate.take():
            assert len(piece) <= PIECE_BYTES
            found += piece
    inflate.end()
    assert bytes(found) == data


def test_no_bytes_at_all_are_no_lie() -> None:
    Inflate("gzip").end()
    lie = Inflate("deflate")
    lie.feed(b"x")
    assert lie.take() == b""
    with pytest.raises(Undecodable):
        lie.end()


@pytest.mark.parametrize(
    ("status", "body", "challenge", "request_id", "expected"),
    [
        (404, b"", None, 1, True),
        (404, b'{"id":1,"error":{"code":-32601}}', None, 1, False),
        (404, b'{"id":2,"error":{"code":-32601}}', None, 1, True),
        (404, b'{"id":null,"error":{"code":-32601}}', None, 1, True),
        (404, b'{"id":true,"error":{"code":-32601}}', None, 1, True),
        (404, b'{"id":1,"error":{"code":-32001}}', None, 1, True),
        (404, b'{"id":1,"error":{"code":-32601}}', None, None, True),
        (404, b'{"id":1}', None, 1, True),
        (404, b"\xff\xfe", None, 1, True),
        (410, b"anything", None, 1, True),
        (400, b"Mcp-Session-Id header is required", None, 1, True),
        (400, b"Missing session ID", None, 1, True),
        (400, b"Invalid session", None, 1, True),
        (400, b"Unknown MCP session", None, 1, True),
        (400, b"The session has been terminated", None, 1, True),
        (400, b"session abc does not exist", None, 1, True),
        (400, b"Bad request: invalid cursor", None, 1, False),
        (400, b"obsession found", None, 1, False),
        (401, b"Session not found", None, 1, True),
        (401, b"Session not found", "Bearer", 1, False),
        (503, b"session expired", None, 1, True),
        (503, b"try again", None, 1, False),
        (500, b"session expired", None, 1, False),
        (200, b"session expired", None, 1, False),
    ],
)
def test_a_session_is_lost_by_status_or_by_words(
    status: int, body: bytes, challenge: str | None, request_id: object, expected: bool
) -> None:
    assert is_lost(status, body, www_authenticate=challenge, request_id=request_id) is expected


def test_pauses_grow_from_what_the_server_asked_for_to_a_bound() -> None:
    assert [pause_s(n, retry_s=None) for n in range(8)] == [1, 1, 2, 4, 8, 16, 32, 60]
    assert [pause_s(n, retry_s=0.5) for n in range(3)] == [0.5, 0.5, 1]
    assert pause_s(0, retry_s=0) == MIN_PAUSE_S
    assert pause_s(9, retry_s=300) == 300
    assert pause_s(0, retry_s=None, at_least_s=90) == 90


@given(st.integers(0, 10**6), st.none() | st.floats(0, 10**6))
def test_no_pause_is_shorter_than_asked_nor_endless(fruitless: int, retry_s: float | None) -> None:
    pause = pause_s(fruitless, retry_s=retry_s)
    assert pause >= max(MIN_PAUSE_S, retry_s or 0)
    assert pause <= max(MAX_PAUSE_S, retry_s or 0)


def test_a_stream_is_good_if_it_brought_something_or_lived() -> None:
    assert is_fruitful(messages=1, lived_s=0)
    assert is_fruitful(messages=0, lived_s=10)
    assert not is_fruitful(messages=0, lived_s=9.9)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), "timeout"),
        (aiohttp.ServerDisconnectedError(), "reset"),
        (ConnectionResetError(), "reset"),
        (aiohttp.ClientPayloadError(), "reset"),
        (aiohttp.InvalidURL("x"), "content"),
        (RuntimeError("session is closed"), "reset"),
    ],
)
def test_an_error_of_the_library_has_one_kind(error: Exception, kind: str) -> None:
    assert kind_of(error) == kind


def test_a_page_is_told_by_its_title_or_its_text() -> None:
    assert page_title("<TITLE lang=en>\n A </TITLE><p>b") == "\n A "
    assert page_title("<p>a<br>b</p>").split() == ["a", "b"]
    assert page_title("<title></title><h1>Gone</h1>").split() == ["Gone"]
    assert page_title("<title" * 50_000) == "<title" * 50_000  # in linear time


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert shown(URL("https://u:p@a.example:8443/x?key=1#f")) == "https://a.example:8443/x"


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"{}", b"{}"), (b"\xef\xbb\xbf {} \r\n", b"{}"), (b"", b""), (b" \n", b""), (b"[1", b"[1")],
)
def test_what_is_around_a_message_is_taken_off(data: bytes, expected: bytes) -> None:
    assert bare(data) == expected
