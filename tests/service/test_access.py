"""Nobody beyond this machine reads anything without a token."""

from __future__ import annotations

import hashlib

import pytest

from observant_host.config import JwtSettings, ServiceSettings, Token
from observant_host.errors import ConfigError
from observant_host.service.access import is_loopback, listeners, parse_address

TOKEN = Token(sha256=hashlib.sha256(b"secret").hexdigest(), scopes=("read",))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:8700", "127.0.0.1", 8700), ("[::1]:0", "::1", 0), ("localhost:1", "localhost", 1)],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    assert parse_address(text, key="listen") == (host, port)


@pytest.mark.parametrize("text", ["", "8700", "host:", "host:x", "host:70000", ":1"])
def test_a_bad_address_names_its_key(text: str) -> None:
    with pytest.raises(ConfigError, match=r"service\.listen"):
        parse_address(text, key="listen")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("h", False)],
)
def test_loopback_is_known(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    "settings",
    [ServiceSettings(listen="0.0.0.0:1"), ServiceSettings(metrics_listen="10.0.0.1:1")],
)
def test_listening_beyond_loopback_needs_a_token(settings: ServiceSettings) -> None:
    with pytest.raises(ConfigError, match="token"):
        listeners(settings, {})
    assert listeners(settings, {"t": TOKEN})


def test_an_issuer_of_tokens_will_do_as_well() -> None:
    issuer = JwtSettings(issuer="https://i.example", audience=("a",), jwks_file="k")
    assert listeners(ServiceSettings(listen="0.0.0.0:1", jwt=issuer), {})


def test_who_has_a_listener_of_their_own_is_not_on_the_first() -> None:
    settings = ServiceSettings(listen="127.0.0.1:1", admin_listen="127.0.0.1:2")
    assert listeners(settings, {}) == {"admin": ("127.0.0.1", 2), "mcp": ("127.0.0.1", 1)}
    same = ServiceSettings(listen="127.0.0.1:1", admin_listen="127.0.0.1:1")
    assert listeners(same, {}) == {"admin": ("127.0.0.1", 1)}
