"""Nobody beyond this machine reads anything without a token."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from observant_host.config import ServiceSettings, Token
from observant_host.errors import ConfigError
from observant_host.service.access import Access, is_loopback, listeners, parse_address

if TYPE_CHECKING:
    from pathlib import Path

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


def test_without_tokens_everything_local_is_allowed() -> None:
    assert Access({}).allows(None, "read")


@pytest.mark.parametrize(
    ("header", "scope", "allowed"),
    [
        ("Bearer secret", "read", True),
        ("bearer secret", "read", True),
        ("Bearer secret", "operate", False),
        ("Bearer other", "read", False),
        ("Basic secret", "read", False),
        (None, "read", False),
    ],
)
def test_a_token_opens_what_its_scopes_say(header: str | None, scope: str, allowed: bool) -> None:
    access = Access({"t": TOKEN})
    assert access.allows(header, scope) is allowed  # type: ignore[arg-type]  # a plain string


def test_tokens_come_from_files_and_variables_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("A_TOKEN", "from-env")
    access = Access(
        {
            "f": Token(file=str(tmp_path / "token"), scopes=("read",)),
            "e": Token(env="A_TOKEN", scopes=("operate",)),
        }
    )
    assert access.allows("Bearer from-file", "read")
    assert access.allows("Bearer from-env", "operate")


@pytest.mark.parametrize("token", [Token(file="/nowhere/token"), Token(env="NOT_SET_ANYWHERE")])
def test_a_token_that_cannot_be_read_is_an_error_that_names_it(token: Token) -> None:
    with pytest.raises(ConfigError, match=r"tokens\.t"):
        Access({"t": token})
