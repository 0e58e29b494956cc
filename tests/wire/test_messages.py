from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.wire.messages import (
    COMPLETE,
    MAX_INPUT_REQUESTS,
    Discovered,
    EmbeddedRequest,
    Initialized,
    InputRequired,
    Page,
    Peek,
    is_empty,
    parse_discover,
    parse_initialize,
    parse_input_required,
    parse_page,
    peek,
    string_list,
)

DISCOVER: dict[str, Any] = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {"listChanged": True}},
    "ttlMs": 3000,
    "cacheScope": "public",
    "instructions": "Be kind.",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
}
INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
}


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: inside for name, inside in value.items() if name != key}


def test_a_full_discover_result_is_read() -> None:
    assert parse_discover(raw(DISCOVER)) == Discovered(
        supported_versions=("2026-07-28",),
        capabilities={"tools": {"listChanged": True}},
        server_info={"name": "s", "version": "1"},
        instructions="Be kind.",
        ttl_ms=3000,
        cache_scope="public",
    )


def test_a_discover_result_needs_only_versions_and_capabilities() -> None:
    bare = {"supportedVersions": [], "capabilities": {}}
    assert parse_discover(raw(bare)) == Discovered(supported_versions=(), capabilities={})


@pytest.mark.parametrize(
    "change",
    [
        {"resultType": None},
        {"ttlMs": -5},
        {"ttlMs": "soon"},
        {"ttlMs": True},
        {"cacheScope": "galaxy"},
        {"instructions": 5},
        {"_meta": None},
        {"_meta": {"io.modelcontextprotocol/serverInfo": "me"}},
        {"more": [1]},
    ],
)
def test_the_rest_of_a_discover_result_is_read_leniently(change: dict[str, Any]) -> None:
    found = parse_discover(raw({**DISCOVER, **change}))
    assert isinstance(found, Discovered)
    assert found.ttl_ms >= 0


def test_server_info_is_also_taken_from_the_stray_top_level_field() -> None:
    stray = without(DISCOVER, "_meta") | {"serverInfo": {}}
    found = parse_discover(raw(stray))
    assert isinstance(found, Discovered)
    assert found.server_info == {}
    assert isinstance(none := parse_discover(raw(without(DISCOVER, "_meta"))), Discovered)
    assert none.server_info is None


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([], "no JSON object"),
        (5, "no JSON object"),
        (without(DISCOVER, "supportedVersions"), "`supportedVersions` is missing"),
        ({**DISCOVER, "supportedVersions": "2026-07-28"}, '`supportedVersions` is "2026-07-28"'),
        ({**DISCOVER, "supportedVersions": [1]}, "`supportedVersions` is a list"),
        (without(DISCOVER, "capabilities"), "`capabilities` is missing"),
        ({**DISCOVER, "capabilities": None}, "`capabilities` is null"),
        ({**DISCOVER, "capabilities": []}, "`capabilities` is a list"),
        ({**DISCOVER, "resultType": "input_required"}, '`resultType` is "input_required"'),
        ({**DISCOVER, "resultType": ["complete"]}, "`resultType` is a list"),
    ],
)
def test_what_is_no_discover_result_names_the_field(value: Any, named: str) -> None:
    problem = parse_discover(raw(value))
    assert isinstance(problem, str)
    assert named in problem


def test_a_field_that_cannot_be_decoded_counts_as_missing() -> None:
    broken = Raw(b'{"supportedVersions":["2026-07-28"],"capabilities":{"a":1e400}}')
    assert parse_discover(broken) == "`capabilities` is missing, not an object"


@pytest.mark.parametrize("text", ["{}", "null", "{ }", "{\t\r\n}"])
def test_an_answer_that_says_nothing_is_empty(text: str) -> None:
    assert is_empty(Raw(text.encode()))


@pytest.mark.parametrize("text", ["[]", '""', "0", "false", '{"a":1}'])
def test_any_other_answer_is_not_empty(text: str) -> None:
    assert not is_empty(Raw(text.encode()))


def test_a_valid_initialize_result_is_read() -> None:
    assert parse_initialize(raw({**INITIALIZE, "instructions": None, "more": 1})) == Initialized(
        version="2025-11-25",
        capabilities={"tools": {}},
        server_info={"name": "s", "version": "1"},
    )


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("text", "no JSON object"),
        (without(INITIALIZE, "protocolVersion"), "`protocolVersion` is missing"),
        ({**INITIALIZE, "protocolVersion": ""}, '`protocolVersion` is ""'),
        ({**INITIALIZE, "protocolVersion": 20251125}, "`protocolVersion` is 20251125"),
        ({**INITIALIZE, "capabilities": None}, "`capabilities` is null"),
        (without(INITIALIZE, "capabilities"), "`capabilities` is missing"),
        (without(INITIALIZE, "serverInfo"), "`serverInfo` is missing"),
        ({**INITIALIZE, "serverInfo": {"version": "1"}}, "`serverInfo.name` is missing"),
        ({**INITIALIZE, "serverInfo": {"name": "", "version": "1"}}, '`serverInfo.name` is ""'),
        ({**INITIALIZE, "serverInfo": {"name": "s"}}, "`serverInfo.version` is missing"),
        ({**INITIALIZE, "serverInfo": {"name": "s", "version": {}}}, "is an object"),
        ({**INITIALIZE, "serverInfo": {"name": "s", "version": None}}, "is null"),
        ({**INITIALIZE, "serverInfo": {"name": 1, "version": ""}}, "`serverInfo.name` is 1"),
    ],
)
def test_an_invalid_initialize_result_names_the_field(value: Any, named: str) -> None:
    problem = parse_initialize(raw(value))
    assert isinstance(problem, str)
    assert named in problem


def test_a_problem_shows_little_of_what_a_server_wrote() -> None:
    long = parse_discover(raw({**DISCOVER, "capabilities": "x" * 1000}))
    assert isinstance(long, str)
    assert len(long) < 120
    odd = parse_discover(raw({**DISCOVER, "capabilities": "\x1b[2J"}))
    assert odd == "`capabilities` is an unprintable string, not an object"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, Peek()),
        ({"resultType": None}, Peek()),
        ({"resultType": "complete", "isError": True}, Peek("complete", True)),
        ({"resultType": "input_required"}, Peek("input_required")),
        ({"isError": 1}, Peek()),
        ({"resultType": 5}, Peek(problem="`resultType` is no string")),
        ([], Peek(problem="the result is no JSON object")),
        (None, Peek(problem="the result is no JSON object")),
    ],
)
def test_a_peek_tells_what_routing_must_know(value: Any, expected: Peek) -> None:
    assert peek(raw(value)) == expected


def test_a_page_keeps_its_items_as_bytes() -> None:
    page = parse_page(
        Raw(b'{"tools":[{"name":"a","n":1e400}, 5 ],"nextCursor":"","ttlMs":9}'), "tools"
    )
    assert isinstance(page, Page)
    assert [bytes(item) for item in page.items] == [b'{"name":"a","n":1e400}', b"5"]
    assert (page.next_cursor, page.ttl_ms, page.cache_scope) == ("", 9, "private")


@pytest.mark.parametrize("cursor", [{}, {"nextCursor": None}])
def test_a_list_ends_without_a_cursor(cursor: dict[str, Any]) -> None:
    assert parse_page(raw({"prompts": [], **cursor}), "prompts") == Page(())


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, "no JSON object"),
        ({}, "`resources` is missing"),
        ({"resources": {}}, "`resources` is an object"),
        ({"resources": [], "nextCursor": 5}, "`nextCursor` is 5"),
        ({"resources": [], "nextCursor": []}, "`nextCursor` is a list"),
    ],
)
def test_what_is_no_page_names_the_field(value: Any, named: str) -> None:
    problem = parse_page(raw(value), "resources")
    assert isinstance(problem, str)
    assert named in problem


def test_input_requests_keep_their_params_and_state_exactly() -> None:
    text = (
        b'{"resultType":"input_required","requestState":"{\\"a\\": 1}","inputRequests":'
        b'{"q":{"method":"elicitation/create","params":{"n":1.10}},"r":{"method":"roots/list"}}}'
    )
    found = parse_input_required(Raw(text))
    assert isinstance(found, InputRequired)
    assert (found.request_state, found.has_state) == ('{"a": 1}', True)
    assert found.requests["r"] == EmbeddedRequest("roots/list", None)
    params = found.requests["q"].params
    assert params is not None
    assert bytes(params) == b'{"n":1.10}'


def test_an_empty_state_is_a_state_and_an_absent_one_is_none() -> None:
    assert parse_input_required(raw({"requestState": ""})) == InputRequired({}, "", True)
    asked = {"inputRequests": {"q": {"method": "roots/list"}}, "requestState": None}
    found = parse_input_required(raw(asked))
    assert isinstance(found, InputRequired)
    assert (found.request_state, found.has_state) == (None, False)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([], "no JSON object"),
        ({}, "neither"),
        ({"inputRequests": None}, "neither"),
        ({"inputRequests": {}}, "neither"),
        ({"requestState": 5}, "`requestState` is 5"),
        ({"inputRequests": []}, "`inputRequests` is no object"),
        ({"inputRequests": {"q": 5}}, 'entry "q" has no method'),
        ({"inputRequests": {"q": {"method": ""}}}, 'entry "q" has no method'),
        ({"inputRequests": {"q": {"method": 5}}}, 'entry "q" has no method'),
        (
            {"inputRequests": {str(n): {"method": "x"} for n in range(MAX_INPUT_REQUESTS + 1)}},
            "more than",
        ),
    ],
)
def test_what_asks_for_nothing_or_wrongly_is_named(value: Any, named: str) -> None:
    problem = parse_input_required(raw(value))
    assert isinstance(problem, str)
    assert named in problem


def test_a_list_of_strings_is_bounded() -> None:
    assert string_list(["a", "b"]) == ("a", "b")
    assert string_list(["a", 1]) is None
    assert string_list("a") is None
    many = string_list(["x"] * 1000)
    assert many is not None
    assert len(many) == 100


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_no_parser_raises_on_any_json(value: Any) -> None:
    for fields in (value, *({key: value} for key in (*DISCOVER, *INITIALIZE, "tools"))):
        body = raw(fields)
        parse_discover(body)
        parse_initialize(body)
        parse_page(body, "tools")
        parse_input_required(body)
        peek(body)


def test_the_usual_result_is_looked_at_without_making_anything_of_it() -> None:
    assert peek(Raw(b'{"resultType":"complete","content":[]}')) is COMPLETE
    assert peek(Raw(b'{"resultType":"complete","isError":true}')) == Peek("complete", True)
    assert peek(Raw(b'{"content":[]}')) == Peek()
