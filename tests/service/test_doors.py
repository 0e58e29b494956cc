"""What every request to a listener is answered, by who asks, from where and how."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest

from observant_host.config import ServiceSettings, Token
from observant_host.errors import ConfigError
from observant_host.service.access import hall
from observant_host.telemetry.vocabulary import AuthFailed, HttpAnswered
from tests.service.doors import Doors, doors, token
from tests.support.hosts import PATIENCE_S, facts

if TYPE_CHECKING:
    from pathlib import Path

API = "/api/v1/servers"


class Row(NamedTuple):
    """`said` is a part of the answer's body or of its WWW-Authenticate."""

    what: str
    method: str
    target: str
    status: int
    keys: dict[str, Any] | None = None
    said: str = ""


ROWS = (
    Row("health needs nothing", "GET", "/healthz", 200, said='"ok"'),
    Row("no token", "GET", API, 401, said='scope="read"'),
    Row("no token, agents", "POST", "/mcp", 401, said='scope="mcp"'),
    Row("no token, metrics", "GET", "/metrics", 401, said='scope="read"'),
    Row("wrong token", "GET", API, 401, {"bearer": "guessed"}, 'error="invalid_token"'),
    Row("half a token", "GET", API, 401, {"bearer": "reader-secre"}, 'error="invalid_token"'),
    Row("an empty token", "GET", API, 401, {"Authorization": "Bearer  "}, "invalid_token"),
    Row("another kind", "GET", API, 401, {"Authorization": "Basic cmVhZGVy"}, "invalid_token"),
    Row("a token in the query", "GET", API + "?access_token=reader-secret", 401),
    Row("wrong scope", "GET", API, 403, {"bearer": "agent-secret"}, "insufficient_scope"),
    Row("no scope at all", "GET", API, 403, {"bearer": "nothing-secret"}, "insufficient_scope"),
    Row("wrong scope, agents", "POST", "/mcp", 403, {"bearer": "reader-secret"}, 'scope="mcp"'),
    Row("wrong scope, acts", "POST", API + "/a/hold", 403, {"bearer": "reader-secret"}, "operate"),
    Row("right token", "GET", API, 200, {"bearer": "reader-secret"}, '"servers"'),
    Row("any case of the scheme", "GET", API, 200, {"Authorization": "bEARER reader-secret"}),
    Row("used too often", "GET", API, 200, {"bearer": "slow-secret"}),
    Row("used too often", "GET", API, 429, {"bearer": "slow-secret"}, "too often"),
    Row("foreign Host", "GET", "/healthz", 403, {"Host": "evil.example"}, '"host"'),
    Row("no Host", "GET", "/healthz", 400, {"Host": ""}, "Missing"),
    Row("localhost as Host", "GET", "/healthz", 200, {"Host": "localhost:1"}),
    Row("foreign Origin", "GET", "/healthz", 403, {"Origin": "https://evil.example"}, '"origin"'),
    Row("opaque Origin", "GET", "/healthz", 403, {"Origin": "null"}, '"origin"'),
    Row("local Origin", "GET", "/healthz", 200, {"Origin": "http://localhost:6274"}),
    Row("foreign Origin, right token", "POST", "/mcp", 403,
        {"Origin": "https://evil.example", "bearer": "agent-secret"}, '"origin"'),
    Row("no such path", "GET", "/admin.php", 404, said="nothing at this path"),
    Row("wrong method", "POST", "/healthz", 405, said="there is: GET"),
    Row("wrong method, agents", "PUT", "/mcp", 405, {"bearer": "agent-secret"}),
    Row("dots", "GET", "/api/v1/../../healthz", 400, said="dots"),
    Row("encoded dots", "GET", "/api/v1/%2e%2e/healthz", 400, said="dots"),
    Row("twice encoded dots", "GET", "/%252e%252e/healthz", 400, said="encoded"),
    Row("encoded slash", "GET", "/api%2fv1/servers", 400, said="encoded"),
    Row("backslash", "GET", "/api\\v1", 400),
    Row("two slashes", "GET", "//healthz", 400, said="empty"),
    Row("encoded zero", "GET", "/healthz%00", 400, said="encoded"),
    Row("a whole URL", "GET", "http://evil.example/healthz", 400, said="must be a path"),
    Row("no gzip", "POST", "/api/v1/tools/call", 400,
        {"bearer": "agent-secret", "body": b"{}", "Content-Encoding": "gzip"}, "not encoded"),
    Row("no gzip, agents", "POST", "/mcp", 400,
        {"bearer": "agent-secret", "body": b"{}", "Content-Encoding": "gzip"}, "not encoded"),
    Row("oversized body", "POST", "/api/v1/tools/call", 413,
        {"bearer": "agent-secret", "body": b"x" * 20_000}, "larger"),
    Row("oversized body, no token", "POST", "/api/v1/tools/call", 401, {"body": b"x" * 20_000}),
    Row("oversized header", "GET", "/healthz", 400, {"X_Long": "x" * 10_000}),
    Row("oversized target", "GET", "/healthz?" + "x" * 10_000, 400),
)  # fmt: skip


async def test_each_request_gets_its_answer() -> None:
    async with small() as here:
        wrong = []
        for row in ROWS:
            answer = await here.ask(row.method, row.target, **(row.keys or {}))
            told = answer.headers.get("www-authenticate", "")
            text = f"{told} {answer.body.decode('utf-8', 'replace')}".strip()
            request = f"{row.what:30} {row.method:4} {row.target[:40]:40}"
            print(f"{request} -> {answer.status} {text[:90]}")
            if answer.status != row.status or row.said not in text:
                wrong.append((row.what, answer.status, text[:200]))
        assert wrong == []
        failed = [one.reason for one in facts(here.told, AuthFailed)]
        assert set(failed) == {"missing", "invalid", "scope", "rate", "origin", "host"}
        seen = str([msgspec.structs.asdict(one.fact) for one in here.told])
        assert "-secret" not in seen
        assert "guessed" not in seen
        routes = {one.route for one in facts(here.told, HttpAnswered)}
        assert routes == {"/healthz", "/api/v1", "/mcp", "/metrics", "other"}


def small() -> Any:
    return doors(max_message_bytes=10_000)


@pytest.mark.parametrize("target", ["/healthz", API, "/mcp", "/nothing"])
async def test_every_answer_has_the_headers_that_keep_browsers_careful(target: str) -> None:
    async with doors() as here:
        headers = (await here.ask("GET", target)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["server"] == "observant-host"
        assert "access-control-allow-origin" not in headers


async def test_a_refusal_says_when_to_come_again_and_never_the_token() -> None:
    async with doors(tokens={"t": token("often-secret", "read", rate=0.05)}) as here:
        first = await here.ask("GET", API, bearer="often-secret")
        second = await here.ask("GET", API, bearer="often-secret")
        assert (first.status, second.status) == (200, 429)
        assert 1 <= int(second.headers["retry-after"]) <= 20
        assert b"often-secret" not in second.body


async def test_whoever_is_on_this_machine_needs_no_token_where_none_is_configured() -> None:
    async with doors(tokens={}) as here:
        assert (await here.ask("GET", API)).status == 200
        assert (await here.ask("GET", "/metrics")).status == 200


async def test_a_head_that_does_not_come_is_not_waited_for() -> None:
    async with doors(head_s=0.2) as here:
        assert (await here.send(b"GET /healthz HTT")).status == 0
        assert (await here.send(b"")).status == 0


async def test_a_body_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hall, "BODY_S", 0.2)
    async with doors() as here:
        answer = await here.ask(
            "POST", "/api/v1/tools/call", bearer="agent-secret", Content_Length="50"
        )
        assert answer.status == 408


async def test_what_is_written_into_the_file_of_a_token_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first-token\n")
    async with doors(tokens={"ci": Token(file=str(file), scopes=("read",))}) as here:

        async def until(secret: str, status: int) -> None:
            async with asyncio.timeout(PATIENCE_S):
                while (await here.ask("GET", API, bearer=secret)).status != status:
                    await asyncio.sleep(0.05)

        await until("first-token", 200)
        file.write_text("first-token\nsecond-token\n")
        await until("second-token", 200)
        await until("first-token", 200)
        file.write_text("second-token\n")
        await until("first-token", 401)
        file.unlink()
        await until("second-token", 401)
        file.write_text("second-token")
        await until("second-token", 200)


@pytest.mark.parametrize("content", ["", "\n \n"])
async def test_an_empty_file_opens_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content)
    with pytest.raises(ConfigError, match=r"tokens\.t\.file"):
        async with doors(tokens={"t": Token(file=str(tmp_path / "token"))}):
            pass


@pytest.mark.parametrize(
    "bad", [Token(file="/nowhere/token"), Token(env="NOT_SET_ANYWHERE"), Token(sha256="no digest")]
)
async def test_a_token_that_cannot_be_read_is_an_error_that_names_it(bad: Token) -> None:
    with pytest.raises(ConfigError, match=r"tokens\.t"):
        async with doors(tokens={"t": bad}):
            pass


async def test_a_variable_holds_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "from-env")
    async with doors(tokens={"t": Token(env="A_TOKEN", scopes=("read",))}) as here:
        assert (await here.ask("GET", API, bearer="from-env")).status == 200


async def test_each_listener_serves_its_part_and_no_other() -> None:
    settings = ServiceSettings(
        listen="127.0.0.1:0", admin_listen="localhost:0", metrics_listen="127.0.0.1:0"
    )
    async with doors(settings=settings) as here:
        found = {
            (at, target): (await here.ask("GET", target, listener=at)).status
            for at in ("admin", "mcp", "metrics")
            for target in ("/healthz", "/metrics", API, "/mcp")
        }
        assert found == {
            **dict.fromkeys([(at, "/healthz") for at in ("admin", "mcp", "metrics")], 200),
            **dict.fromkeys([("admin", "/metrics"), ("admin", API), ("mcp", "/mcp")], 401),
            ("metrics", "/metrics"): 200,
            **dict.fromkeys([("admin", "/mcp"), ("mcp", "/metrics"), ("mcp", API)], 404),
            **dict.fromkeys([("metrics", API), ("metrics", "/mcp")], 404),
        }


async def test_without_a_token_nothing_but_health_is_served() -> None:
    async with doors() as here:
        for method, path in routes(here):
            answer = await here.ask(method, path.replace("{", "").replace("}", ""))
            public = path in ("/healthz", "/readyz")
            shown = path == "/console/login" or path.startswith("/console/static/")
            assert public or shown or answer.status in (401, 303, 403), (method, path)


def routes(here: Doors) -> list[tuple[str, str]]:
    found = []
    for runner in here.service._runners:
        for route in runner.app.router.routes():
            method = "GET" if route.method == "*" else route.method
            if route.resource is not None and method != "HEAD":
                found.append((method, route.resource.canonical))
    assert len(found) > 20
    return found


async def test_a_page_that_somebody_named_may_read_the_answers() -> None:
    settings = ServiceSettings(listen="127.0.0.1:0", allowed_origins=("https://app.example",))
    async with doors(settings=settings) as here:
        before = await here.ask("OPTIONS", "/mcp", Origin="https://app.example")
        assert before.status == 204
        assert before.headers["access-control-allow-origin"] == "https://app.example"
        assert "Mcp-Protocol-Version" in before.headers["access-control-allow-headers"]
        after = await here.ask("POST", "/mcp", Origin="https://app.example")
        assert after.status == 401
        assert after.headers["access-control-allow-origin"] == "https://app.example"
        other = await here.ask("OPTIONS", "/mcp", Origin="http://localhost:1")
        assert other.status == 403
