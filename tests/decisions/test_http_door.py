"""No page from elsewhere, and no path that means two things, gets further than the head."""

from __future__ import annotations

import pytest

from observant_host.decisions.http_door import (
    Gate,
    gate,
    host_fits,
    host_name,
    is_loopback,
    origin_fits,
    target_flaw,
)

HERE = gate("127.0.0.1", loopback=True)
NAMED = gate("127.0.0.1", hosts=("Agents.example.com:8700", "*.Internal"), loopback=True)
OPEN = gate("0.0.0.0", hosts=("host.lan",), loopback=False)
PAGES = gate("127.0.0.1", origins=("https://App.example/",), loopback=True)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8700", "localhost"),
        ("[::1]:8700", "::1"),
        ("10.0.0.1:1", "10.0.0.1"),
        ("", None),
        ("a b", None),
        ("a:b", None),
        ("a@b", None),
        ("[::1", None),
        ("evil.example:8700:1", None),
        ("ｅvil", None),
    ],
)
def test_the_name_of_a_host_header_is_read(header: str, name: str | None) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize(
    ("where", "header", "fits"),
    [
        (HERE, "127.0.0.1:8700", True),
        (HERE, "localhost", True),
        (HERE, "[::1]", True),
        (HERE, None, False),
        (HERE, "evil.example:8700", False),
        (HERE, "127.0.0.1.evil.example", False),
        (HERE, "localhost.evil.example", False),
        (HERE, "10.0.0.7:8700", False),
        (NAMED, "agents.example.com", True),
        (NAMED, "example.com", False),
        (NAMED, "host.internal:80", True),
        (NAMED, "a.b.internal", True),
        (NAMED, "internal", False),
        (NAMED, "evilinternal", False),
        (OPEN, "10.0.0.7:8700", True),
        (OPEN, "[fe80::1]", True),
        (OPEN, "evil.example", False),
        (gate("agents.lan", loopback=False), "AGENTS.lan:1", True),
        (gate("127.0.0.1", hosts=("*",), loopback=True), "anything.example", True),
        (gate("0.0.0.0", loopback=False), "observant-host:8700", True),
        (gate("0.0.0.0", loopback=False), "not a name", False),
    ],
)
def test_only_names_of_ours_are_let_in(where: Gate, header: str | None, fits: bool) -> None:
    assert host_fits(header, where) is fits


@pytest.mark.parametrize(
    ("where", "origin", "fits"),
    [
        (HERE, "http://localhost:6274", True),
        (HERE, "https://127.0.0.1", True),
        (HERE, "http://[::1]:3000", True),
        (HERE, "http://evil.example", False),
        (HERE, "http://localhost.evil.example", False),
        (HERE, "null", False),
        (HERE, "file://", False),
        (HERE, "http://[", False),
        (HERE, "chrome-extension://localhost", False),
        (HERE, "http://", False),
        (PAGES, "https://app.example", True),
        (PAGES, "http://app.example", False),
        (PAGES, "http://localhost:6274", False),
        (PAGES, "http://127.0.0.1:8700", True),
    ],
)
def test_only_pages_of_this_machine_or_named_ones_may_ask(
    where: Gate, origin: str, fits: bool
) -> None:
    assert origin_fits(origin, where, scheme="http", host="127.0.0.1:8700") is fits


@pytest.mark.parametrize(
    "target",
    ["/", "/mcp", "/api/v1/servers/a.b", "/x?next=../..%2f", "/a%20b", "/...", "/.well-known/x"],
)
def test_plain_paths_pass(target: str) -> None:
    assert target_flaw(target) is None


@pytest.mark.parametrize(
    "target",
    [
        "",
        "*",
        "http://evil.example/mcp",
        "/a/../mcp",
        "/a/..",
        "/./mcp",
        "/%2e%2e/mcp",
        "/.%2E/mcp",
        "//evil.example/mcp",
        "/a//b",
        "/a%2fb",
        "/a%5cb",
        "/a\\b",
        "/%252e%252e/mcp",
        "/a%00",
        "/a%0d%0ab",
        "/a%7f",
        "/a%zz",
        "/a%2",
        "/a#b",
        "/ü",
        "/a?b c",
    ],
)
def test_paths_that_mean_two_things_are_refused(target: str) -> None:
    assert target_flaw(target)


@pytest.mark.parametrize(
    ("host", "loopback"), [("LOCALHOST", True), ("127.9.9.9", True), ("::1", True), ("x", False)]
)
def test_loopback_is_known(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
