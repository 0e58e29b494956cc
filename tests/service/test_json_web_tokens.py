"""Tokens of an issuer: only its own, for this host, in their time, with what it says of them."""

from __future__ import annotations

import base64
import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import jwt
import msgspec
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from observant_host.config import JwtSettings, Profile, ServiceSettings, ToolFilter
from observant_host.service.access import signing_keys
from observant_host.service.access.refused import Refused
from observant_host.service.access.signing_keys import SigningKeys, keys_in
from observant_host.telemetry.vocabulary import AuthFailed
from tests.service.doors import Doors, doors, token
from tests.support.clock import ManualClock
from tests.support.hosts import facts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ISSUER = "https://issuer.example"
HERE = "https://host.example/mcp"
API = "/api/v1/servers"


class Key:
    """A key pair of an issuer."""

    def __init__(self, kid: str, algorithm: str = "ES256") -> None:
        self.kid, self.algorithm = kid, algorithm
        self.private: Any = (
            ec.generate_private_key(ec.SECP256R1())
            if algorithm == "ES256"
            else rsa.generate_private_key(65537, 2048)
        )

    @property
    def public(self) -> dict[str, Any]:
        kind = (
            jwt.algorithms.ECAlgorithm if self.algorithm == "ES256" else jwt.algorithms.RSAAlgorithm
        )
        found: dict[str, Any] = json.loads(kind.to_jwk(self.private.public_key()))
        return {**found, "kid": self.kid, "use": "sig"}

    def sign(self, *, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        now = int(time.time())
        said = {
            "iss": ISSUER,
            "aud": HERE,
            "sub": "ann",
            "scope": "read",
            "exp": now + 600,
            **claims,
        }
        kept = {key: value for key, value in said.items() if value is not None}
        return jwt.encode(kept, self.private, self.algorithm, {"kid": self.kid, **(headers or {})})


OURS, NEXT, RSA, FOREIGN = Key("one"), Key("two"), Key("rsa", "RS256"), Key("one")


@asynccontextmanager
async def issued(file: Path, *keys: Key, **changes: Any) -> AsyncIterator[Doors]:
    publish(file, *keys)
    issuer = JwtSettings(
        **{
            "issuer": ISSUER,
            "audience": (HERE,),
            "jwks_file": str(file),
            "resource": HERE,
            **changes,
        }
    )
    settings = ServiceSettings(listen="127.0.0.1:0", jwt=issuer)
    profiles = {"few": Profile(servers=("a",), tools=ToolFilter(allow=("add",)))}
    own = {"t": token("own-secret", "read")}
    async with doors(settings=settings, profiles=profiles, tokens=own) as here:
        yield here


def publish(file: Path, *keys: Key) -> None:
    file.write_bytes(msgspec.json.encode({"keys": [key.public for key in keys]}))


def unsigned() -> str:
    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")

    claims = {"iss": ISSUER, "aud": HERE, "sub": "ann", "scope": "read", "exp": 2**31}
    return f"{part({'alg': 'none', 'typ': 'JWT', 'kid': 'one'})}.{part(claims)}."


def by_public_key() -> str:
    """The old trick: the public key taken for the secret of a symmetric algorithm."""
    secret = str(OURS.public["x"])
    return jwt.encode(
        {"iss": ISSUER, "aud": HERE, "sub": "ann", "scope": "read", "exp": 2**31},
        secret,
        "HS256",
        {"kid": "one"},
    )


def tokens_and_answers() -> dict[str, tuple[str, int, str]]:
    """Signed when they are used: a suite takes longer than a token's leeway."""
    now = int(time.time())
    return {
        "right": (OURS.sign(), 200, ""),
        "right, by RSA": (RSA.sign(), 200, ""),
        "for several hosts": (OURS.sign(aud=["https://other.example", HERE]), 200, ""),
        "within the leeway": (OURS.sign(exp=now - 5), 200, ""),
        "wrong issuer": (OURS.sign(iss="https://evil.example"), 401, "issuer"),
        "no issuer": (OURS.sign(iss=None), 401, "claims"),
        "wrong audience": (OURS.sign(aud="https://other.example"), 401, "audience"),
        "no audience": (OURS.sign(aud=None), 401, "claims"),
        "expired": (OURS.sign(exp=now - 600), 401, "expired"),
        "no expiry": (OURS.sign(exp=None), 401, "claims"),
        "not yet": (OURS.sign(nbf=now + 600), 401, "not_before"),
        "issued later": (OURS.sign(iat=now + 600), 401, "not_before"),
        "unsigned": (unsigned(), 401, "algorithm"),
        "signed with the public key": (by_public_key(), 401, "algorithm"),
        "unknown key": (NEXT.sign(), 401, "key"),
        "another's key of that name": (FOREIGN.sign(), 401, "signature"),
        "key of another kind": (OURS.sign(headers={"kid": "rsa"}), 401, "form"),
        "cut": (OURS.sign().rpartition(".")[0], 401, "form"),
        "no token": ("a.b.c", 401, "form"),
        "nobody": (OURS.sign(sub=None), 401, "principal"),
        "nobody by name": (OURS.sign(sub=""), 401, "principal"),
        "other scope": (OURS.sign(scope="operate mcp"), 403, "scope"),
        "scope as a list": (OURS.sign(scope=["read"]), 200, ""),
        "no scope": (OURS.sign(scope=None), 403, "scope"),
        "scope of no form": (OURS.sign(scope=7), 403, "scope"),
        "a configured token": ("own-secret", 200, ""),
        "too long": ("x" * 8000 + ".y.z", 401, "form"),
    }


async def test_each_token_gets_its_answer(tmp_path: Path) -> None:
    async with issued(tmp_path / "keys", OURS, RSA) as here:
        wrong = []
        for what, (bearer, status, detail) in tokens_and_answers().items():
            before = len(facts(here.told, AuthFailed))
            answer = await here.ask("GET", API, bearer=bearer)
            told = facts(here.told, AuthFailed)[before:]
            said = next((one.detail or one.reason for one in told), "")
            print(f"{what:30} -> {answer.status} {said}")
            if (answer.status, said) != (status, detail):
                wrong.append((what, answer.status, said))
        assert wrong == []


async def test_a_rotated_key_is_found_and_the_old_one_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing_keys, "COOLDOWN_S", 0.0)
    file = tmp_path / "keys"
    async with issued(file, OURS) as here:
        assert (await here.ask("GET", API, bearer=OURS.sign())).status == 200
        publish(file, NEXT)
        assert (await here.ask("GET", API, bearer=NEXT.sign())).status == 200
        assert (await here.ask("GET", API, bearer=OURS.sign())).status == 401


async def test_the_issuers_words_are_mapped_and_its_profile_and_rate_hold(tmp_path: Path) -> None:
    mapped = {"scope_map": {"tools": ("read",)}, "rate": 0.5, "profile": "few"}
    async with issued(tmp_path / "keys", OURS, **mapped) as here:
        assert (await here.ask("GET", API, bearer=OURS.sign())).status == 403
        bea = OURS.sign(scope="tools other", sub="bea")
        assert (await here.ask("GET", API, bearer=bea)).status == 200
        assert (await here.ask("GET", API, bearer=bea)).status == 429
        cat = OURS.sign(scope="tools", sub="cat")
        assert (await here.ask("GET", API, bearer=cat)).status == 200


async def test_a_client_is_told_where_to_get_a_token(tmp_path: Path) -> None:
    async with issued(tmp_path / "keys", OURS) as here:
        refused = await here.ask("POST", "/mcp")
        where = "https://host.example/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{where}"' in refused.headers["www-authenticate"]
        for path in ("", "/mcp"):
            found = await here.ask("GET", "/.well-known/oauth-protected-resource" + path)
            assert found.json() == {
                "resource": HERE,
                "authorization_servers": [ISSUER],
                "scopes_supported": ["mcp", "read", "operate"],
                "bearer_methods_supported": ["header"],
                "resource_name": "observant-host",
            }


async def test_keys_that_cannot_be_read_are_the_issuers_failure(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    async with issued(file, OURS, jwks_file=str(tmp_path / "nowhere")) as here:
        answer = await here.ask("GET", API, bearer=OURS.sign())
        assert answer.status == 503
        assert answer.headers["retry-after"] == "10"
        assert facts(here.told, AuthFailed) == []


class Issuer:
    """Publishes keys over HTTP, as it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: dict[str, Any] = {}

    async def keys(self, _: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(**self.answer)


@asynccontextmanager
async def published() -> AsyncIterator[tuple[Issuer, str]]:
    issuer, app = Issuer(), web.Application()
    app.router.add_get("/keys", issuer.keys)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield issuer, f"http://127.0.0.1:{runner.addresses[0][1]}/keys"
    finally:
        await runner.cleanup()


async def test_keys_are_fetched_rarely_and_kept_while_the_issuer_is_down() -> None:
    clock = ManualClock()
    document = msgspec.json.encode({"keys": [OURS.public]})
    async with published() as (issuer, url):
        settings = JwtSettings(issuer=ISSUER, audience=(HERE,), jwks_url=url)
        keys = SigningKeys(settings, clock=clock)
        issuer.answer = {"body": document}
        assert await keys.find("one") is not None
        for _ in range(20):
            assert await keys.find("made up") is None
        assert issuer.asked == 1
        await clock.advance(signing_keys.COOLDOWN_S)
        assert await keys.find("made up") is None
        assert issuer.asked == 2
        issuer.answer = {"status": 500}
        await clock.advance(signing_keys.FRESH_S)
        assert await keys.find("one") is not None
        assert await keys.find(None) is not None
        assert issuer.asked == 3
        await clock.advance(signing_keys.STALE_S)
        with pytest.raises(Refused, match="cannot be read"):
            await keys.find("one")


@pytest.mark.parametrize(
    "answer",
    [
        {"body": b"x" * (signing_keys.DOCUMENT_BYTES + 1)},
        {"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}},
        {"body": b"[]"},
        {"body": b'{"keys": 7}'},
        {"body": b"<html>"},
    ],
)
async def test_what_is_no_key_set_gives_no_keys(answer: dict[str, Any]) -> None:
    async with published() as (issuer, url):
        settings = JwtSettings(issuer=ISSUER, audience=(HERE,), jwks_url=url)
        keys = SigningKeys(settings, clock=ManualClock())
        issuer.answer = answer
        with pytest.raises(Refused):
            await keys.find("one")


def test_only_public_keys_for_signatures_are_used() -> None:
    document = msgspec.json.encode(
        {
            "keys": [
                OURS.public,
                {**RSA.public, "use": "enc"},
                {"kty": "oct", "k": "c2VjcmV0", "kid": "symmetric"},
                {"kty": "EC", "kid": "broken"},
                {"kty": "RSA", "kid": "future", "n": 7, "e": "AQAB"},
            ]
        }
    )
    assert list(keys_in(document)) == ["one"]
