"""Headers against the body, and what a client reads."""

from __future__ import annotations

from typing import Any

import pytest

from observant_host.decisions.northbound_http import (
    Accepted,
    accepted,
    decoded,
    is_json,
    mismatch,
    repeats,
)
from observant_host.wire.envelope import PROTOCOL_VERSION
from observant_host.wire.mirrored_headers import Mirrored
from tests.decisions.test_northbound import STAMP, read

CALL = "tools/call"
BASE = {"mcp-protocol-version": ["2026-07-28"], "mcp-method": ["tools/call"]}
REGION = Mirrored("Mcp-Param-Region", ("place", "region"), "string")
COUNT = Mirrored("Mcp-Param-Count", ("count",), "integer")
FLAG = Mirrored("Mcp-Param-Flag", ("flag",), "boolean")


def problem(
    headers: dict[str, list[str]],
    *mirrored: Mirrored,
    arguments: Any = None,
    name: Any = "echo",
    method: str = "tools/call",
) -> str | None:
    params = {"_meta": STAMP, "name": name, "arguments": arguments}
    refusal = mismatch(read(params, method), headers, mirrored)
    if refusal is None:
        return None
    assert (refusal.code, refusal.status) == (-32020, 400)
    return refusal.message


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({**BASE, "mcp-name": ["echo"]}, None),
        ({**BASE, "mcp-name": ["=?base64?ZWNobw==?="]}, None),
        ({"mcp-method": ["tools/call"], "mcp-name": ["echo"]}, "Protocol-Version is missing"),
        ({**BASE, "mcp-protocol-version": ["2025-06-18"]}, "Protocol-Version says something"),
        ({**BASE, "mcp-protocol-version": ["2026-07-28"] * 2}, "more than once"),
        ({"mcp-protocol-version": ["2026-07-28"], "mcp-name": ["echo"]}, "Mcp-Method is missing"),
        ({**BASE, "mcp-method": ["Tools/Call"], "mcp-name": ["echo"]}, "Mcp-Method says"),
        (BASE, "Mcp-Name is missing"),
        ({**BASE, "mcp-name": ["Echo"]}, "Mcp-Name says"),
        ({**BASE, "mcp-name": ["=?base64?***?="]}, "Mcp-Name cannot be read"),
        ({**BASE, "mcp-name": ["=?base64?/w==?="]}, "Mcp-Name cannot be read"),
        ({**BASE, "mcp-name": ["\udcffecho"]}, "Mcp-Name cannot be read"),
    ],
)
def test_a_header_that_is_missing_unreadable_or_different_is_refused(
    headers: dict[str, list[str]], says: str | None
) -> None:
    found = problem(headers)
    assert found is None if says is None else found is not None and says in found


@pytest.mark.parametrize(
    ("headers", "keys", "plainly"),
    [
        ({**BASE, "mcp-name": ["echo"]}, {}, True),
        ({**BASE, "mcp-method": ["tools/list"]}, {"method": "tools/list"}, True),
        ({**BASE, "mcp-name": ["=?base64?ZWNobw==?="]}, {}, False),
        ({**BASE, "mcp-name": ["=?base64?x?="]}, {"name": "=?base64?x?="}, False),
        ({**BASE, "mcp-name": ["é"]}, {"name": "é"}, False),
        ({**BASE, "mcp-name": ["a\x01"]}, {"name": "a\x01"}, False),
        ({**BASE, "mcp-name": ["echo"] * 2}, {}, False),
        ({**BASE, "mcp-method": ["x"]}, {"method": "x"}, False),
        ({**BASE, "mcp-method": ["tools/list"], "mcp-name": ["echo"]}, {}, False),
        ({"mcp-method": ["tools/call"], "mcp-name": ["echo"]}, {}, False),
        ({**BASE, "mcp-protocol-version": ["2020-01-01"]}, {"version": "2020-01-01"}, False),
        (BASE, {"name": None}, False),
        (BASE, {}, False),
    ],
)
def test_headers_that_plainly_repeat_the_body_are_told_apart_at_once(
    headers: dict[str, list[str]], keys: dict[str, Any], plainly: bool
) -> None:
    stamp = STAMP | ({PROTOCOL_VERSION: keys["version"]} if "version" in keys else {})
    question = read({"_meta": stamp, "name": keys.get("name", "echo")}, keys.get("method", CALL))
    assert repeats(question, lambda name, default: headers.get(name, default)) is plainly
    if plainly:
        assert mismatch(question, headers) is None


def test_what_has_no_name_needs_no_name_header() -> None:
    headers = {**BASE, "mcp-method": ["tools/list"]}
    assert problem(headers, method="tools/list") is None
    assert problem({**BASE, "mcp-method": ["x"]}, method="x") is None
    assert problem(BASE, name=None) is None  # its own error is the useful one


@pytest.mark.parametrize(
    ("arguments", "headers", "fits"),
    [
        ({"place": {"region": "us"}}, {"mcp-param-region": ["us"]}, True),
        ({"place": {"region": "日"}}, {"mcp-param-region": ["=?base64?5pel?="]}, True),
        ({"place": {"region": "us"}}, {"mcp-param-region": ["eu"]}, False),
        ({"place": {"region": "us"}}, {}, False),
        ({"place": {"region": None}}, {}, True),
        ({"place": {"region": None}}, {"mcp-param-region": ["us"]}, False),
        ({"place": "us"}, {}, True),
        (None, {}, True),
        ({"count": 42}, {"mcp-param-count": ["42"]}, True),
        ({"count": 42}, {"mcp-param-count": ["42.0"]}, True),
        ({"count": 42.0}, {"mcp-param-count": ["42"]}, True),
        ({"count": 42}, {"mcp-param-count": ["43"]}, False),
        ({"count": 42}, {"mcp-param-count": ["4e1"]}, False),
        ({"count": 42}, {}, False),
        ({"count": 1.5}, {}, True),
        ({"count": 2**60}, {}, True),
        ({"count": {"x": 1}}, {}, True),
        ({"count": {"x": 1}}, {"mcp-param-count": ["1"]}, False),
        ({"flag": True}, {"mcp-param-flag": ["true"]}, True),
        ({"flag": False}, {"mcp-param-flag": ["false"]}, True),
        ({"flag": True}, {"mcp-param-flag": ["1"]}, False),
        ({"flag": True}, {}, False),
    ],
)
def test_mirrored_arguments_are_compared_as_what_they_are(
    arguments: Any, headers: dict[str, list[str]], fits: bool
) -> None:
    whole = {**BASE, "mcp-name": ["echo"], **headers}
    assert (problem(whole, REGION, COUNT, FLAG, arguments=arguments) is None) is fits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain with  spaces", "plain with  spaces"),
        ("", ""),
        ("=?base64?5pel?=", "日"),
        ("=?BASE64?5pel?=", "=?BASE64?5pel?="),
        ("=?base64?5pel", "=?base64?5pel"),
        ("=?base64?=", "=?base64?="),
        ("a\x00b", None),
        ("ü", None),
    ],
)
def test_only_the_exact_markers_hold_base64(value: str, text: str | None) -> None:
    assert decoded(value) == text


@pytest.mark.parametrize(
    ("header", "json", "sse"),
    [
        (None, True, True),
        (" ", True, True),
        ("*/*", True, True),
        ("application/json, text/event-stream", True, True),
        ("Application/JSON;q=0.5", True, False),
        ("text/event-stream", False, True),
        ("application/*", True, False),
        ("text/*", False, True),
        ("application/json;q=0, text/event-stream; q=0.0", False, False),
        ("text/html", False, False),
    ],
)
def test_a_client_reads_what_it_says(header: str | None, json: bool, sse: bool) -> None:
    assert accepted(header) == Accepted(json=json, sse=sse)


@pytest.mark.parametrize(
    ("content_type", "json"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("text/plain", False),
        ("application/jsonp", False),
        (None, False),
    ],
)
def test_a_body_must_say_that_it_is_json(content_type: str | None, json: bool) -> None:
    assert is_json(content_type) is json
