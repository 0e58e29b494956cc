"""What agents may ask, whose rules a message follows, and what a request must say of itself."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from observant_host.decisions.northbound import (
    DOOR_STATUS,
    METHODS,
    Meta,
    Method,
    Question,
    Refusal,
    at_the_door,
    era_of,
    lacks_capability,
    method_of,
    read_request,
    says_version,
    unsupported,
)
from observant_host.wire.envelope import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
)
from observant_host.wire.jsonrpc import Request
from observant_host.wire.revisions import LEGACY

STAMP: dict[str, Any] = {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}}
EVERYTHING: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}


def raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


def request(params: Any = None, method: str = "tools/list") -> Request:
    return Request(1, method, None if params is None else raw(params))


def read(params: Any = None, method: str = "tools/list") -> Question:
    found = read_request(request(params, method), era="modern")
    assert isinstance(found, Question)
    return found


def refused(params: Any) -> Refusal:
    found = read_request(request(params), era="modern")
    assert isinstance(found, Refusal)
    return found


# Whose rules


def test_the_modern_stamp_makes_a_message_modern_whatever_else_it_has() -> None:
    for method, header, session in itertools.product(
        ("initialize", "tools/list"), (None, "2026-07-28", *LEGACY), (True, False)
    ):
        assert era_of(method, says_version=True, header=header, has_session=session) == "modern"


@pytest.mark.parametrize(
    ("method", "header", "session", "era"),
    [
        ("initialize", None, False, "legacy"),
        ("initialize", "2026-07-28", False, "legacy"),
        ("tools/list", "2025-06-18", False, "legacy"),
        ("tools/list", None, True, "legacy"),
        ("tools/list", "2099-01-01", True, "legacy"),
        ("tools/list", "2026-07-28", True, "modern"),
        ("tools/list", None, False, "modern"),
        ("tools/list", "2099-01-01", False, "modern"),
    ],
)
def test_without_the_stamp_initialize_an_old_version_or_a_session_make_it_legacy(
    method: str, header: str | None, session: bool, era: str
) -> None:
    assert era_of(method, says_version=False, header=header, has_session=session) == era


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (None, False),
        ({}, False),
        ({"_meta": {}}, False),
        ({"_meta": 1}, False),
        ([], False),
        ({"_meta": {PROTOCOL_VERSION: 1}}, True),
        ({"_meta": STAMP}, True),
    ],
)
def test_the_stamp_is_seen_before_anything_else_is_known(params: Any, says: bool) -> None:
    assert says_version(None if params is None else raw(params)) is says


# What a request says of itself


def test_what_a_request_says_is_read_once() -> None:
    meta = {
        **STAMP,
        CLIENT_CAPABILITIES: {"roots": {}},
        CLIENT_INFO: {"name": "n" * 500, "version": 1},
        LOG_LEVEL: "info",
        "progressToken": "t",
        "traceparent": "00-x",
        "baggage": "b",
        "com.example/own": {"kept": 1.0},
        "io.modelcontextprotocol/else": 1,
    }
    found = read({"_meta": meta, "name": "echo", "n": None}, "tools/call")
    assert found.meta == Meta(
        version="2026-07-28",
        capabilities={"roots": {}},
        client_name="n" * 128,
        client_version=None,
        log_level="info",
        progress_token="t",
        trace={"traceparent": "00-x", "baggage": "b"},
        others={"com.example/own": raw({"kept": 1.0})},
    )
    assert found.text("name") == "echo"
    assert found.text("n") is None
    assert found.value("absent") is None


def test_a_parameter_that_cannot_be_decoded_is_none() -> None:
    params = {"_meta": raw(STAMP), "deep": Raw(b"[" * 5000 + b"]" * 5000)}
    found = Question(
        id=1, method="x", era="modern", params=params, meta=read({"_meta": STAMP}).meta
    )
    assert found.value("deep") is None


@pytest.mark.parametrize(
    ("params", "missing"),
    [
        (None, "_meta"),
        ({}, "_meta"),
        ({"_meta": None}, PROTOCOL_VERSION),
        ({"_meta": {}}, PROTOCOL_VERSION),
        ({"_meta": {**STAMP, PROTOCOL_VERSION: 20260728}}, PROTOCOL_VERSION),
        ({"_meta": {PROTOCOL_VERSION: "2026-07-28"}}, CLIENT_CAPABILITIES),
        ({"_meta": {**STAMP, CLIENT_CAPABILITIES: None}}, CLIENT_CAPABILITIES),
        ({"_meta": {**STAMP, LOG_LEVEL: "loud"}}, LOG_LEVEL),
        ({"_meta": {**STAMP, "progressToken": True}}, "progressToken"),
        ({"_meta": {**STAMP, "progressToken": 1.5}}, "progressToken"),
        ({"_meta": []}, "_meta"),
        ([], "params"),
    ],
)
def test_what_is_missing_or_wrong_is_named(params: Any, missing: str) -> None:
    refusal = refused(params)
    assert (refusal.code, refusal.status) == (-32602, 400)
    assert missing in refusal.message


def test_a_legacy_request_has_what_its_session_agreed_on() -> None:
    found = read_request(
        request({"_meta": {"progressToken": 7}}),
        era="legacy",
        version="2025-06-18",
        capabilities={"sampling": {}},
    )
    assert isinstance(found, Question)
    assert (found.meta.version, found.meta.capabilities) == ("2025-06-18", {"sampling": {}})
    assert found.meta.progress_token == 7
    bare = read_request(request(), era="legacy")
    assert isinstance(bare, Question)
    assert bare.meta == Meta(version="", capabilities={})
    bad = read_request(request({"_meta": 1}), era="legacy")
    assert isinstance(bad, Refusal)


# What is served


def test_only_our_own_revisions_are_served_and_the_refusal_names_them() -> None:
    assert unsupported("2026-07-28") is None
    refusal = unsupported("2099-01-01\n")
    assert refusal is not None
    assert (refusal.code, refusal.status) == (-32022, 400)
    assert refusal.data == {"supported": ["2026-07-28"], "requested": "2099-01-01\n"}
    assert "\n" not in refusal.message


def test_every_method_of_the_revision_is_known_and_no_other() -> None:
    for name, method in METHODS.items():
        assert method_of(name, EVERYTHING) == method
    for name in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "x"):
        refusal = method_of(name, EVERYTHING)
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.status) == (-32601, 404)


def test_what_is_not_announced_is_not_served() -> None:
    refusal = method_of("prompts/get", {"tools": {}})
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.status) == (-32601, 404)
    assert isinstance(method_of("server/discover", {}), Method)


def test_a_lacking_capability_is_named_as_the_protocol_wants() -> None:
    refusal = lacks_capability("elicitation", "sampling")
    assert (refusal.code, refusal.status) == (-32021, 400)
    assert refusal.data == {"requiredCapabilities": {"elicitation": {}, "sampling": {}}}


@pytest.mark.parametrize(("code", "status"), DOOR_STATUS.items())
def test_each_code_at_the_door_has_its_http_status(code: int, status: int) -> None:
    assert at_the_door(code, "m", 1) == Refusal(code, "m", 1, status)
