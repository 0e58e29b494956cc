"""The tables that say who may ask are checked before anybody is let in."""

from __future__ import annotations

import pytest

from observant_host.config import JwtSettings
from observant_host.config.keys import JWT
from tests.config.reading import problems, read

WHOLE = """
[profiles.few]
servers = ["a"]
[servers.a]
command = "a"
[service.jwt]
issuer = "https://issuer.example"
audience = ["https://host.example/mcp"]
jwks_url = "https://issuer.example/keys"
algorithms = ["ES256"]
principal_claim = "client_id"
scope_claim = "scp"
profile = "few"
rate = 5
resource = "https://host.example/mcp"
[service.jwt.scope_map]
"tools:use" = ["mcp"]
admin = ["mcp", "read", "operate"]
"""


ISSUER = '[service.jwt]\nissuer = "https://i.example"\naudience = ["a"]\n'


def test_an_issuer_is_read_with_every_key() -> None:
    assert set(JWT.keys) == set(JwtSettings.__struct_fields__)
    assert read(WHOLE).config.service.jwt == JwtSettings(
        issuer="https://issuer.example",
        audience=("https://host.example/mcp",),
        jwks_url="https://issuer.example/keys",
        algorithms=("ES256",),
        principal_claim="client_id",
        scope_claim="scp",
        scope_map={"tools:use": ("mcp",), "admin": ("mcp", "read", "operate")},
        profile="few",
        rate=5.0,
        resource="https://host.example/mcp",
    )


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "[::1]:1"])
def test_keys_on_this_machine_need_no_encryption(host: str) -> None:
    found = read(ISSUER + f'jwks_url = "http://{host}/keys"').config.service.jwt
    assert found is not None


def test_without_the_table_there_is_no_issuer() -> None:
    assert read("").config.service.jwt is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[service.jwt]\njwks_file = "k"', "service.jwt.issuer"),
        ('[service.jwt]\nissuer = "https://i.example"\njwks_file = "k"', "service.jwt.audience"),
        (ISSUER, "jwks_url, jwks_file; found: none"),
        (ISSUER + 'jwks_file = "k"\njwks_url = "https://i.example"', "jwks_url and jwks_file"),
        (ISSUER + 'jwks_file = "k"\nalgorithms = []', "service.jwt.algorithms"),
        (ISSUER + 'jwks_file = "k"\nalgorithms = ["none"]', "service.jwt.algorithms"),
        (ISSUER + 'jwks_file = "k"\nalgorithms = ["HS256"]', "service.jwt.algorithms"),
        (ISSUER + 'jwks_file = "k"\nprofile = "x"', "service.jwt.profile"),
        (ISSUER + 'jwks_file = "k"\n[service.jwt.scope_map]\nx = ["root"]', "scope_map.x"),
        (ISSUER + 'jwks_url = "http://i.example/k"', "must begin with https://"),
        (ISSUER + 'jwks_file = "k"\nlifetime = 1', "lifetime"),
        ("[profiles.p]\nservers = []", "profiles.p.servers is empty"),
        ("[profiles.p.tools]\nallow = []", "profiles.p.tools.allow is empty"),
        ('[tokens.t]\nenv = "T"\nrate = 0', "tokens.t.rate"),
        ('[service]\ntls_cert = "c"', "tls_key"),
    ],
)
def test_what_would_let_in_more_than_was_meant_is_an_error_with_its_key(
    text: str, key: str
) -> None:
    assert any(key in problem for problem in problems(text))
