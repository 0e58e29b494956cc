"""Sessions go on with a token while it is one, the wire is encrypted, a profile holds on /mcp."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.test_utils import make_mocked_request
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from observant_host.config import (
    HostConfig,
    JwtSettings,
    Profile,
    ServiceSettings,
    Token,
    ToolFilter,
)
from observant_host.errors import ConfigError
from observant_host.service.access import Access, Refused
from observant_host.service.access.tls import tls_context
from observant_host.telemetry.vocabulary import AuthFailed
from tests.service.doors import TOKENS, doors, token
from tests.service.test_json_web_tokens import HERE, ISSUER, OURS, publish
from tests.support.clock import ManualClock
from tests.support.hosts import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from aiohttp import web

    from observant_host.telemetry.vocabulary import Fact


async def made(config: HostConfig, clock: ManualClock) -> tuple[Access, list[Fact]]:
    told: list[Fact] = []
    return await asyncio.to_thread(Access, config, clock=clock, tell=told.append), told


async def test_a_session_goes_on_while_its_token_is_one(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", ManualClock()
    file.write_text("first-token")
    tokens = {"ops": Token(file=str(file), scopes=("read", "operate"))}
    access, told = await made(HostConfig(tokens=tokens), clock)
    caller, mark = await access.sign_in("first-token", "read")
    assert caller.principal == "ops"
    assert "first-token" not in mark
    assert await access.resume("ops", mark, "operate") == caller
    for name, which, scope in (("other", mark, "read"), ("ops", "made up", "read")):
        with pytest.raises(Refused, match="not valid"):
            await access.resume(name, which, scope)
    with pytest.raises(Refused, match="scope mcp"):
        await access.resume("ops", mark, "mcp")
    file.write_text("second-token")
    await clock.advance(2.0)
    with pytest.raises(Refused, match="not valid"):
        await access.resume("ops", mark, "read")
    with pytest.raises(Refused):
        await access.sign_in("first-token", "read")
    assert [type(one) for one in told] == [AuthFailed]


async def test_a_session_by_an_issuers_token_ends_with_it(tmp_path: Path) -> None:
    clock, file = ManualClock(), tmp_path / "keys"
    publish(file, OURS)
    issuer = JwtSettings(issuer=ISSUER, audience=(HERE,), jwks_file=str(file))
    access, _ = await made(HostConfig(service=ServiceSettings(jwt=issuer)), clock)
    assert not access.is_open
    until_s = clock.wall_ns() // 10**9 + 10**9
    _, mark = await access.sign_in(OURS.sign(exp=until_s), "read")
    assert (await access.resume("ann", mark, "read")).principal == "ann"
    await clock.advance(1e9 + 1)
    with pytest.raises(Refused, match="not valid"):
        await access.resume("ann", mark, "read")


def asking(secret: str) -> web.Request:
    return make_mocked_request("POST", "/mcp", {"Authorization": f"Bearer {secret}"})


def access_key(access: Access, secret: str) -> bytes:
    """What stands for a token that is plainly one."""
    key = access.key_of(asking(secret).headers)
    assert key is not None
    return key


async def test_who_was_found_is_known_for_a_moment_and_no_longer_than_the_file_says(
    tmp_path: Path,
) -> None:
    file, clock = tmp_path / "token", ManualClock()
    file.write_text("first-token")
    access, _ = await made(
        HostConfig(tokens={"ops": Token(file=str(file), scopes=("mcp",))}), clock
    )
    one, one_key = asking("first-token"), access_key(access, "first-token")
    assert access.known(one_key, "mcp") is None
    caller = await access.identify(one, "mcp")
    assert access.known(one_key, "mcp") == caller
    assert access.known(one_key, "operate") is None
    assert access.known(access_key(access, "other"), "mcp") is None
    assert access.key_of(make_mocked_request("POST", "/mcp").headers) is None
    file.write_text("second-token")
    await clock.advance(1.0)
    assert access.known(one_key, "mcp") is None
    with pytest.raises(Refused, match="not valid"):
        await access.identify(one, "mcp")
    assert access.known(one_key, "mcp") is None


async def test_an_issuers_token_is_verified_anew_after_a_second(
    tmp_path: Path,
) -> None:
    clock, file = ManualClock(), tmp_path / "keys"
    publish(file, OURS)
    issuer = JwtSettings(issuer=ISSUER, audience=(HERE,), jwks_file=str(file))
    access, _ = await made(HostConfig(service=ServiceSettings(jwt=issuer)), clock)
    now = clock.wall_ns() // 10**9
    secret = OURS.sign(exp=now + 10**9)
    one, one_key = asking(secret), access_key(access, secret)
    caller = await access.identify(one, "read")
    assert access.known(one_key, "read") == caller
    await clock.advance(1.0)
    assert access.known(one_key, "read") is None
    assert await access.identify(one, "read") == caller
    await clock.advance(10**9)
    assert access.known(one_key, "read") is None


def certificate(folder: Path) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made_ = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made_.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(cert_file), str(key_file)


async def test_with_a_certificate_every_listener_speaks_tls(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    settings = ServiceSettings(listen="127.0.0.1:0", tls_cert=cert, tls_key=key)
    async with doors(settings=settings) as here, asyncio.timeout(PATIENCE_S):
        assert here.service.addresses["admin"].startswith("https://")
        host, port = here.at()
        trusted = ssl.create_default_context(cafile=cert)
        reader, writer = await asyncio.open_connection(host, port, ssl=trusted)
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert b" 200 OK" in await reader.readline()
        writer.close()


def test_a_certificate_that_cannot_be_used_is_an_error_that_names_its_key(tmp_path: Path) -> None:
    assert tls_context(ServiceSettings()) is None
    (tmp_path / "x").write_text("no certificate")
    file, nowhere = str(tmp_path / "x"), str(tmp_path / "nowhere")
    for cert, key, said in (
        (file, file, r"service\.tls_cert, service\.tls_key: they cannot be used together"),
        (nowhere, file, r"service\.tls_cert: .*/nowhere cannot be read: No such file"),
        (file, nowhere, r"service\.tls_key: .*/nowhere cannot be read: No such file"),
    ):
        with pytest.raises(ConfigError, match=said):
            tls_context(ServiceSettings(tls_cert=cert, tls_key=key))


def modern(method: str, **params: Any) -> bytes:
    stamp = "io.modelcontextprotocol"
    meta = {f"{stamp}/protocolVersion": "2026-07-28", f"{stamp}/clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return json.dumps(message).encode()


async def test_a_profile_is_all_there_is_for_its_callers() -> None:
    profiles = {"few": Profile(servers=("one",), tools=ToolFilter(deny=("hidden",)))}
    tokens = {**TOKENS, "few": token("few-secret", "mcp", "read", profile="few")}
    servers = {"one": {"tools": "echo,hidden"}, "two": {"tools": "other"}}
    async with doors(tokens=tokens, profiles=profiles, servers=servers) as here:
        seen: dict[str, set[str]] = {}
        for secret in ("few-secret", "operator-secret", "few-secret"):
            answer = await here.ask(
                "POST",
                "/mcp",
                bearer=secret,
                body=modern("tools/list"),
                Accept="application/json, text/event-stream",
                Mcp_Protocol_Version="2026-07-28",
                Mcp_Method="tools/list",
            )
            assert answer.status == 200, answer.body
            names = {tool["name"] for tool in answer.json()["result"]["tools"]}
            assert seen.setdefault(secret, names) == names
        assert seen == {"few-secret": {"echo"}, "operator-secret": {"echo", "hidden", "other"}}
        for name in ("hidden", "one/hidden", "other", "two/other"):
            called = await here.ask(
                "POST",
                "/mcp",
                bearer="few-secret",
                body=modern("tools/call", name=name, arguments={}),
                Accept="application/json, text/event-stream",
                Mcp_Protocol_Version="2026-07-28",
                Mcp_Method="tools/call",
                Mcp_Name=name,
            )
            assert called.json()["error"]["code"] == -32602, name
            assert b"two" not in called.body.replace(name.encode(), b"")
        listed = await here.ask("GET", "/api/v1/servers", bearer="few-secret")
        assert [one["name"] for one in listed.json()["servers"]] == ["one"]
