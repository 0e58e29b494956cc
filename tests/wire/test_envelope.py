from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from observant_host.errors import InvalidCall
from observant_host.wire import legacy
from observant_host.wire.envelope import ClientInfo, Params, Stamp, stamp, stamp_notification

ME = ClientInfo("observant-host", "1.2")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def stamped(params: Params = None, **options: Any) -> bytes:
    settings: dict[str, Any] = {
        "version": "2026-07-28",
        "capabilities": {"elicitation": {}},
        "client_info": ME,
    }
    return stamp(4, "server/discover", params, **{**settings, **options})


def meta_of(frame: bytes) -> dict[str, Any]:
    meta: dict[str, Any] = json.loads(frame)["params"]["_meta"]
    return meta


def test_every_modern_request_carries_version_capabilities_and_client_even_without_params() -> None:
    assert stamped() == (
        b'{"jsonrpc":"2.0","id":4,"method":"server/discover","params":{"_meta":{'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},'
        b'"io.modelcontextprotocol/clientInfo":{"name":"observant-host","version":"1.2"}}}}'
    )


def test_a_call_with_everything_is_these_bytes() -> None:
    frame = stamp(
        5,
        "tools/call",
        {"name": "ident", "arguments": Raw(b'{"big":18446744073709551616,"far":1e400}')},
        version="2026-07-28",
        capabilities=Raw(b"{}"),
        client_info=ME,
        traceparent=TRACE,
        tracestate="a=1",
        progress_token=5,
    )
    assert frame == (
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ident",'
        b'"arguments":{"big":18446744073709551616,"far":1e400},"_meta":{'
        b'"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",'
        b'"tracestate":"a=1","progressToken":5,'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{},'
        b'"io.modelcontextprotocol/clientInfo":{"name":"observant-host","version":"1.2"}}}}'
    )


def test_the_callers_meta_is_kept_and_the_protocols_keys_win() -> None:
    theirs = {
        "com.example/tenant": "t1",
        "progressToken": "theirs",
        "traceparent": "theirs",
        "tracestate": "theirs",
        "io.modelcontextprotocol/protocolVersion": "1999-01-01",
        "io.modelcontextprotocol/clientInfo": {"name": "liar"},
    }
    frame = stamped({"cursor": "", "_meta": theirs}, traceparent=TRACE, progress_token=9)
    assert json.loads(frame)["params"]["cursor"] == ""
    assert meta_of(frame) == {
        "com.example/tenant": "t1",
        "progressToken": 9,
        "traceparent": TRACE,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "observant-host", "version": "1.2"},
    }
    assert theirs["traceparent"] == "theirs"


def test_the_callers_trace_is_forwarded_where_we_have_none() -> None:
    meta = meta_of(stamped(meta={"traceparent": "theirs", "tracestate": "t=1"}))
    assert (meta["traceparent"], meta["tracestate"]) == ("theirs", "t=1")


def test_the_meta_argument_wins_over_meta_in_params() -> None:
    meta = meta_of(stamped({"_meta": {"a": 1, "b": 1}}, meta={"b": 2}))
    assert (meta["a"], meta["b"]) == (1, 2)


def test_raw_params_are_merged_without_touching_their_values() -> None:
    frame = stamped(Raw(b'{"uri":"file:///\xc3\xa9","n":1e400,"_meta":{"k":1.10}}'))
    assert b'"n":1e400' in frame
    assert b'"k":1.10' in frame
    assert b'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' in frame
    assert frame.count(b"_meta") == 1


def test_raw_meta_inside_a_mapping_is_merged() -> None:
    assert meta_of(stamped({"_meta": Raw(b'{"k":1}')}))["k"] == 1


@pytest.mark.parametrize(
    "params",
    [Raw(b"[]"), Raw(b"5"), Raw(b"{"), {"_meta": 5}, {"_meta": Raw(b"[]")}, Raw(b'{"_meta":[]}')],
)
def test_parameters_that_are_no_object_are_the_callers_mistake(params: Params) -> None:
    with pytest.raises(InvalidCall, match="must be a JSON object"):
        stamped(params)


def test_meta_of_null_counts_as_absent() -> None:
    assert "io.modelcontextprotocol/protocolVersion" in meta_of(stamped({"_meta": None}))


def test_pretty_printed_arguments_stay_on_one_line() -> None:
    frame = stamped({"arguments": Raw(b'{\r\n  "a": "x\\ny"\n}')})
    assert b"\n" not in frame
    assert b"\r" not in frame
    assert json.loads(frame)["params"]["arguments"] == {"a": "x\ny"}


def test_a_modern_notification_carries_only_what_it_is_given() -> None:
    plain = stamp_notification("notifications/cancelled", {"requestId": 4})
    assert plain == (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}'
    )
    traced = stamp_notification("notifications/x", None, traceparent=TRACE, meta={"k": 1})
    assert json.loads(traced)["params"] == {"_meta": {"k": 1, "traceparent": TRACE}}
    assert stamp_notification("notifications/x", None) == (
        b'{"jsonrpc":"2.0","method":"notifications/x"}'
    )


def test_initialize_is_these_bytes() -> None:
    frame = legacy.initialize(2, version="2025-11-25", capabilities={}, client_info=ME)
    assert frame == (
        b'{"jsonrpc":"2.0","id":2,"method":"initialize","params":{'
        b'"protocolVersion":"2025-11-25","capabilities":{},'
        b'"clientInfo":{"name":"observant-host","version":"1.2"}}}'
    )


def test_legacy_messages_carry_no_modern_key_not_even_a_callers() -> None:
    theirs = {
        "com.example/tenant": "t1",
        "traceparent": TRACE,
        "tracestate": "a=1",
        "baggage": "b=1",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/logLevel": "debug",
    }
    frame = legacy.request(3, "tools/call", {"name": "x", "_meta": theirs}, progress_token=3)
    assert frame == (
        b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x",'
        b'"_meta":{"com.example/tenant":"t1","progressToken":3}}}'
    )


def test_a_legacy_request_without_params_has_none() -> None:
    assert legacy.request(3, "tools/list", None) == (
        b'{"jsonrpc":"2.0","id":3,"method":"tools/list"}'
    )
    only_modern = legacy.request(3, "ping", None, meta={"traceparent": TRACE})
    assert only_modern == b'{"jsonrpc":"2.0","id":3,"method":"ping"}'


def test_a_legacy_notification() -> None:
    assert legacy.notification("notifications/initialized") == (
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    )
    assert legacy.notification("notifications/cancelled", {"requestId": 3}) == (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}'
    )


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        Raw(b'{"name":"t"}'),
        {"name": "t", "arguments": Raw(b'{"a":1}')},
        {"name": "t", "arguments": Raw(b'{\n "a": 1\n}')},
        {"name": 'say "100%d"', "arguments": {"n": None}},
        {"name": "t", "_meta": {"k": 1, "traceparent": "mine"}},
    ],
)
@pytest.mark.parametrize("traceparent", [None, TRACE])
@pytest.mark.parametrize("tracestate", [None, "a=1"])
@pytest.mark.parametrize("progress_token", [None, 4])
def test_the_stamp_of_a_life_writes_what_the_stamp_of_one_request_writes(
    params: Params, traceparent: str | None, tracestate: str | None, progress_token: int | None
) -> None:
    same: dict[str, Any] = {
        "traceparent": traceparent,
        "tracestate": tracestate,
        "progress_token": progress_token,
    }
    life = Stamp(version="2026-07-28", capabilities={"elicitation": {}}, client_info=ME)
    assert life.request(4, "server/discover", params, **same) == stamped(params, **same)
