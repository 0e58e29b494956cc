"""The OpenAPI document tells all there is, and nothing else; what answers fits what it tells."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from aiohttp import web

from observant_host.service.api import openapi
from observant_host.service.api.door import add_api, socket_owner
from observant_host.service.api.routes import PREFIX, ROUTES
from observant_host.service.events import Events
from observant_host.timing.clock import SystemClock
from tests.service.api.serving import served, until_open
from tests.service.test_service import host_with
from tests.support.hosts import add

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from observant_host import Host
    from tests.service.api.serving import Api

DOCUMENT = json.loads(openapi.document())


def test_every_route_is_in_the_document_and_nothing_else() -> None:
    host: Any = None
    app = web.Application()
    add_api(app, host, identify=socket_owner, events=Events(host, clock=SystemClock()))
    routed = {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None
    }
    described = {
        (method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item
    }
    assert routed == described
    assert len(described) == len(ROUTES) + 1


def test_looking_needs_read_calling_needs_mcp_and_acting_needs_operate() -> None:
    for route in ROUTES:
        calls = route.path in ("/tools/call", "/prompts/get", "/resources/read")
        wanted = "mcp" if calls else "read" if route.method == "GET" else "operate"
        assert route.scope == wanted, route.path


def test_each_operation_has_an_id_of_its_own_and_every_reference_leads_somewhere() -> None:
    ids = [one["operationId"] for item in DOCUMENT["paths"].values() for one in item.values()]
    assert len(set(ids)) == len(ids)
    known = DOCUMENT["components"]["schemas"]
    for reference in references(DOCUMENT):
        assert reference.removeprefix("#/components/schemas/") in known


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def check(method: str, path: str, status: int, document: Any) -> None:
    """The answer fits what the document says of it."""
    responses = DOCUMENT["paths"][PREFIX + path][method.lower()]["responses"]
    response = responses.get(str(status), responses["default"])
    schema = response["content"]["application/json"]["schema"]
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    validator.validate(document)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = host_with(tmp_path, record=True, telemetry=None)
    add(host, "s", {"tools": "echo,mute", "prompts": "greet", "resources": "file:///a"})
    add(host, "old", {"era": "legacy"})
    return host


BODIES: dict[str, dict[str, Any]] = {
    "/tools/call": {"name": "echo", "arguments": {"text": "x"}},
    "/prompts/get": {"name": "greet"},
    "/resources/read": {"uri": "file:///a"},
    "/log-level": {"level": "debug", "for_s": 60},
    "/reload": {"dry_run": True},
    "/record/purge": {"before": 1.0, "dry_run": True},
    "/servers/{name}/disable": {"tool": "mute"},
    "/servers/{name}/capture": {"for_s": 1},
}
NOT_HERE = {"/calls/{id}", "/events", "/reload"}
"""Each has a test of its own; `reload` needs a file, and is refused here."""


async def test_every_route_answers_on_the_network_and_fits_the_document(
    host: Host, tmp_path: Path
) -> None:
    async with served(host, tmp_path) as (api, _):
        for route in ROUTES:
            if route.path in NOT_HERE:
                continue
            path = route.path.replace("{name}", "s")
            keys = {} if route.body is None else {"json": BODIES.get(route.path, {})}
            document = await api.ok(route.method, path, **keys)
            check(route.method, route.path, 200, document)
        status, _, document = await api.answer("POST", "/reload", json={"dry_run": True})
        assert status == 400
        check("POST", "/reload", status, document)
        assert (await api.ok("GET", "/openapi.json")) == DOCUMENT
        decisions = await api.ok("GET", "/decisions?server=old&since=0")
        check("GET", "/decisions", 200, decisions)
        assert decisions["decisions"]


async def test_a_call_is_seen_and_ended_and_its_caller_told(host: Host, tmp_path: Path) -> None:
    async with served(host, tmp_path) as (network, private):
        calling = asyncio.create_task(
            network.answer("POST", "/tools/call", json={"name": "mute", "deadline_s": 60})
        )
        call = await until_open(private)
        assert (call["name"], call["server"], call["principal"]) == ("mute", "s", "local")
        ended = await private.ok("DELETE", f"/calls/{call['id']}?reason=it+hangs")
        check("DELETE", "/calls/{id}", 200, ended)
        status, _, document = await calling
        assert status == 499
        check("POST", "/tools/call", status, document)
        assert document["outcome"] == "cancelled"
        assert document["error"]["message"].startswith("cancelled by cli:ann: it hangs")
        after = await private.ok("GET", "/calls")
        check("GET", "/calls", 200, after)
        assert after["in_flight"] == []
        assert after["recent"][0]["outcome"] == "cancelled"
        status, _, document = await private.answer("DELETE", f"/calls/{call['id']}")
        assert (status, document["error"]["unknown"]) == (404, True)
        assert "`observant-host calls` lists" in document["error"]["message"]
        acts = [one for one in host.recent_decisions() if one["name"] == "observant_host.operator"]
        assert [
            (one["attributes"]["observant_host.operator.verb"], one["server"]) for one in acts
        ] == [("cancel", "s")]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/servers/nobody", None, 404),
        ("GET", "/nothing", None, 404),
        ("POST", "/servers", None, 405),
        ("POST", "/servers/s/explode", None, 404),
        ("POST", "/servers/nobody/probe", {}, 404),
        ("POST", "/servers/s/probe", {"reson": "x"}, 400),
        ("POST", "/servers/s/disable", {"for_s": -1}, 400),
        ("POST", "/servers/s/disable", {"tool": "ecko"}, 404),
        ("POST", "/servers/s/capture", {"for_s": 1e9}, 400),
        ("POST", "/log-level", {"level": "loud"}, 400),
        ("POST", "/log-level", {"level": "debug", "for_s": 1e9}, 400),
        ("POST", "/tools/call", {"name": "echo", "deadline_s": 0}, 400),
        ("POST", "/tools/call", {"name": "echo", "deadline_s": 1e9}, 400),
        ("POST", "/tools/call", {"name": "ecko"}, 404),
        ("POST", "/tools/call", {"name": "mute", "deadline_s": 0.05}, 504),
        ("GET", "/decisions?server=s&since=yesterday", None, 400),
    ],
)
async def test_what_is_refused_is_refused_in_json_with_a_sentence(
    host: Host, tmp_path: Path, method: str, path: str, body: Any, status: int
) -> None:
    async with served(host, tmp_path) as (api, _):
        got, headers, document = await api.answer(method, path, json=body)
        assert got == status, document
        assert headers["Content-Type"].startswith("application/json")
        assert headers["Cache-Control"] == "no-store"
        assert len(document["error"]["message"]) > 10
        if status == 405:
            assert "GET" in headers["Allow"]


async def until_unchanged(api: Api, path: str) -> None:
    """Look again until nothing changed in between, as the memory of a server's process may."""
    status, seen, document = await api.answer("GET", path)
    async with asyncio.timeout(30):
        while status == 200:
            assert seen["Cache-Control"] == "private, no-cache"
            known = seen["ETag"]
            asked = {"If-None-Match": known}
            status, seen, document = await api.answer("GET", path, headers=asked)
            assert (seen["ETag"] == known) == (status == 304)
    assert (status, document) == (304, None)


async def test_whoever_looks_again_pays_only_for_what_changed(host: Host, tmp_path: Path) -> None:
    async with served(host, tmp_path) as (api, _):
        for path in ("/servers", "/tools", "/openapi.json"):
            await until_unchanged(api, path)
        await api.ok("POST", "/servers/s/hold", json={})
        status, _, _ = await api.answer("GET", "/servers", headers={"If-None-Match": '"x"'})
        assert status == 200


async def test_a_call_joins_its_callers_trace(host: Host, tmp_path: Path) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    async with served(host, tmp_path) as (api, _):
        body = {"name": "echo", "arguments": {"text": "x"}}
        headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        document = await api.ok("POST", "/tools/call", json=body, headers=headers)
        assert document["trace_id"] == trace


async def test_the_socket_knows_who_acts_by_their_name(host: Host, tmp_path: Path) -> None:
    async with served(host, tmp_path) as (_, private):
        view = await private.ok("POST", "/servers/s/hold", json={"reason": "a look"})
        assert view["ruling"]["principal"] == "cli:ann"
        view = await private.ok("POST", "/servers/s/retry", json={})
        assert view["ruling"] is None
