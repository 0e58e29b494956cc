"""What a frame of JSON-RPC says, by its members and their types; its bytes are kept."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from observant_host.wire.jsonrpc import (
    MAX_BATCH,
    Broken,
    Error,
    Id,
    Inbound,
    NotAMessage,
    Notification,
    Request,
    Result,
    decode,
    encode_error,
    encode_result,
    normalises_to,
    same_id,
)
from tests.wire.frames import DEEP, one, reply


def test_a_result_keeps_its_bytes() -> None:
    inside = b'{ "b" : [1.10, 18446744073709551616, 1e400], "a" : "\\u00e9", "b":2 }'
    message = one(reply(inside))
    assert isinstance(message, Result)
    assert message.id == 7
    assert bytes(message.result) == inside


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ('{"jsonrpc":"2.0","id":9,"method":"ping"}', Request(9, "ping", None)),
        ('{"jsonrpc":"2.0","id":"9","method":"ping","params":null}', Request("9", "ping", None)),
        ('{"jsonrpc":"2.0","method":"notifications/x"}', Notification("notifications/x", None)),
        ('{"jsonrpc":"2.0","method":""}', Notification("", None)),
    ],
)
def test_requests_and_notifications_of_the_server(frame: str, expected: Inbound) -> None:
    assert one(frame) == expected


def test_params_may_be_anything_and_stay_raw() -> None:
    message = one('{"jsonrpc":"2.0","method":"$/progress","params":[1, 2]}')
    assert isinstance(message, Notification)
    assert message.params is not None
    assert bytes(message.params) == b"[1, 2]"


@pytest.mark.parametrize("request_id", ["null", "1.5", "true", "[1]", "{}"])
def test_a_request_without_a_proper_id_is_no_message(request_id: str) -> None:
    frame = f'{{"jsonrpc":"2.0","id":{request_id},"method":"ping"}}'
    assert isinstance(one(frame), NotAMessage)


@pytest.mark.parametrize("method", ["5", "null", '["ping"]'])
def test_a_method_that_is_no_string_makes_no_message(method: str) -> None:
    assert isinstance(one(f'{{"jsonrpc":"2.0","id":1,"method":{method}}}'), NotAMessage)


def test_a_request_of_another_json_rpc_is_no_message() -> None:
    assert isinstance(one('{"id":1,"method":"ping"}'), NotAMessage)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ('"1"', "1"),
        ("1.0", 1.0),
        ("true", True),
        ("18446744073709551616", 18446744073709551616),
        ("-3", -3),
        ('"ghost"', "ghost"),
    ],
)
def test_an_id_keeps_its_type(text: str, value: Id) -> None:
    message = one(reply(b"{}", text.encode()))
    assert isinstance(message, Result)
    assert same_id(message.id, value)


@pytest.mark.parametrize("request_id", ["null", "[1]", "{}"])
def test_a_result_without_a_readable_id_is_broken(request_id: str) -> None:
    assert one(reply(b"{}", request_id.encode())) == Broken(None, "a result that names no request")


def test_a_result_without_any_id_is_broken() -> None:
    assert one('{"jsonrpc":"2.0","result":{}}') == Broken(None, "a result that names no request")


@pytest.mark.parametrize("text", ["1" * 5000, "1e400", "NaN", "seven", "'7'"])
def test_an_id_that_no_number_holds_loses_only_that_reply(text: str) -> None:
    message = one(reply(b"{}", text.encode()))
    assert isinstance(message, Broken)
    assert message.id is None or not isinstance(message.id, int)


def test_an_error_keeps_code_message_and_raw_data() -> None:
    frame = '{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no","data":{"a": 1}}}'
    message = one(frame)
    assert isinstance(message, Error)
    assert (message.id, message.code, message.message) == (7, -32601, "no")
    assert message.data is not None
    assert bytes(message.data) == b'{"a": 1}'


@pytest.mark.parametrize("text", ['"id":null,', ""])
def test_an_error_may_name_no_request(text: str) -> None:
    message = one(f'{{"jsonrpc":"2.0",{text}"error":{{"code":-32700,"message":"bad"}}}}')
    assert message == Error(None, -32700, "bad")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ('{"code":"-32601","message":"no"}', 0, "no"),
        ('{"code":true,"message":5}', 0, ""),
        ('{"code":1.5}', 0, ""),
        ("{}", 0, ""),
        ('"text"', 0, ""),
        ("[]", 0, ""),
        ('{"code":' + "9" * 30 + "}", 0, ""),
    ],
)
def test_an_error_of_any_shape_is_an_error(error: str, code: int, message: str) -> None:
    decoded = one(f'{{"jsonrpc":"2.0","id":7,"error":{error}}}')
    assert isinstance(decoded, Error)
    assert decoded.id == 7
    assert (decoded.code, decoded.message) in ((code, message), (int("9" * 30), ""))


@pytest.mark.parametrize(
    "error",
    [
        '{"code":"E_FAIL","detail":["x"]}',
        '{"code":"E_FAIL","message":"no","data":{"a":1}}',
        '{"code":-5,"detail":"x"}',
        '"text"',
    ],
)
def test_nothing_of_an_odd_error_is_lost(error: str) -> None:
    decoded = one(f'{{"jsonrpc":"2.0","id":7,"error":{error}}}')
    assert isinstance(decoded, Error)
    assert decoded.data is not None
    assert bytes(decoded.data).decode() == error


def test_a_recognised_error_without_a_message_keeps_its_own_data() -> None:
    decoded = one('{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"data":{"supported":[]}}}')
    assert isinstance(decoded, Error)
    assert decoded.data is not None
    assert bytes(decoded.data) == b'{"supported":[]}'
    assert one('{"jsonrpc":"2.0","id":7,"error":{"code":-32022}}') == Error(7, -32022, "")


def test_an_error_of_null_beside_a_result_is_success() -> None:
    assert isinstance(one('{"jsonrpc":"2.0","id":7,"result":{},"error":null}'), Result)


def test_a_result_of_null_beside_an_error_is_an_error() -> None:
    frame = '{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":-1,"message":"no"}}'
    assert one(frame) == Error(7, -1, "no")


def test_a_result_of_null_is_a_result() -> None:
    assert isinstance(one(reply(b"null")), Result)


def test_both_result_and_error_are_broken_under_their_id() -> None:
    frame = '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":-32603,"message":"both"}}'
    assert one(frame) == Broken(7, "the reply has both a result and an error")


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_a_recognised_code_is_kept_even_beside_a_result(code: int) -> None:
    frame = f'{{"jsonrpc":"2.0","id":7,"result":{{}},"error":{{"code":{code},"data":NaNa}}}}'
    broken = one(frame)
    assert isinstance(broken, Broken)
    assert (broken.id, broken.code) == (7, code)
    assert one(frame.replace("NaNa", "[]")) == Broken(
        7, "the reply has both a result and an error", code
    )


@pytest.mark.parametrize(
    "frame",
    [
        '{"jsonrpc":"2.0","id":7}',
        '{"jsonrpc":"2.0","id":7,"error":null}',
    ],
)
def test_neither_result_nor_error_is_broken(frame: str) -> None:
    assert one(frame) == Broken(7, "the reply has neither a result nor an error")


@pytest.mark.parametrize("extra", ['"result":{}', '"error":{"code":-32022}'])
def test_a_request_that_is_also_a_reply_is_broken(extra: str) -> None:
    message = one(f'{{"jsonrpc":"2.0","id":7,"method":"x",{extra}}}')
    assert isinstance(message, Broken)
    assert message.id == 7
    assert message.code == (-32022 if "error" in extra else None)


@pytest.mark.parametrize("version", ['"1.0"', "2.0", "null"])
def test_a_reply_of_another_json_rpc_is_broken(version: str) -> None:
    problem = "the reply is not marked as JSON-RPC 2.0"
    assert one(f'{{"jsonrpc":{version},"id":7,"result":{{}}}}') == Broken(7, problem)
    assert one(f'{{"jsonrpc":{version},"id":7,"error":{{"code":1}}}}') == Broken(7, problem)
    coded = f'{{"jsonrpc":{version},"error":{{"code":-32022}}}}'
    assert one(coded) == Broken(None, problem, -32022)


def test_the_last_of_duplicate_keys_wins() -> None:
    message = one('{"jsonrpc":"2.0","id":1,"id":7,"result":{"a":1},"result":{"a":2}}')
    assert isinstance(message, Result)
    assert message.id == 7
    assert bytes(message.result) == b'{"a":2}'
    broken = one('{"jsonrpc":"2.0","id":1,"id":7,"result":NaN}')
    assert isinstance(broken, Broken)
    assert broken.id == 7


def test_white_space_around_a_message_is_allowed() -> None:
    assert isinstance(one(b" \t" + reply(b"{}") + b" \r"), Result)


BATCH = (
    b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"n"},'
    b'{"jsonrpc":"2.0","id":5,"method":"ping"},3]'
)


def test_an_array_is_a_batch_where_the_revision_has_batches() -> None:
    messages = decode(BATCH, batches=True)
    kinds = [type(message) for message in messages]
    assert kinds == [Result, Notification, Request, NotAMessage]


def test_elsewhere_each_reply_in_an_array_fails_its_request_naming_the_array() -> None:
    messages = decode(BATCH)
    assert [type(message) for message in messages] == [Broken, *[NotAMessage] * 3]
    assert isinstance(messages[0], Broken)
    assert messages[0].id == 1
    assert "array" in messages[0].problem


def test_a_wrapped_error_keeps_a_recognised_code_and_a_wrapped_broken_reply_its_problem() -> None:
    wrapped = one('[{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":""}}]')
    assert isinstance(wrapped, Broken)
    assert (wrapped.id, wrapped.code) == (1, -32022)
    assert one('[{"jsonrpc":"2.0","id":1}]') == Broken(
        1, "the reply has neither a result nor an error"
    )


def test_arrays_are_bounded() -> None:
    assert isinstance(one(b"[" + b"1," * MAX_BATCH + b"1]", batches=True), NotAMessage)
    assert isinstance(one(DEEP, batches=True), NotAMessage)


def test_an_array_of_arrays_is_no_message() -> None:
    assert decode(b'[[{"jsonrpc":"2.0","id":1,"result":{}}]]', batches=True)[0].__class__ in (
        Broken,
        NotAMessage,
    )


def test_ids_are_the_same_by_type_and_value() -> None:
    ids: list[Id] = [1, 1.0, True, "1", None, 0, False, ""]
    for a in ids:
        for b in ids:
            assert same_id(a, b) == (a is b)
    assert same_id(10**30, 10**30)


@pytest.mark.parametrize(
    ("request_id", "number"),
    [
        (1, 1),
        ("1", 1),
        (1.0, 1),
        (True, 1),
        (False, 0),
        ("-4", -4),
        ("007", 7),
        (1.5, None),
        (float("inf"), None),
        (None, None),
        ("", None),
        ("1_0", None),
        (" 1", None),
        ("1\n", None),
        ("１", None),
        ("1" * 5000, None),
        ("ghost", None),
    ],
)
def test_what_an_id_may_have_meant(request_id: Id, number: int | None) -> None:
    assert normalises_to(request_id) == number


@pytest.mark.parametrize("request_id", [9, 'a"b', 10**30])
def test_answers_to_a_legacy_server_carry_its_own_id(request_id: int | str) -> None:
    ok = json.loads(encode_result(request_id, b'{"roots":[]}'))
    assert ok == {"jsonrpc": "2.0", "id": request_id, "result": {"roots": []}}
    assert encode_result(request_id, Raw(b"{}")).endswith(b'"result":{}}')
    refused = json.loads(encode_error(request_id, -32601, "no “such” method"))
    assert refused == {
        "jsonrpc": "2.0",
        "id": request_id,
        "error": {"code": -32601, "message": "no “such” method"},
    }


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xc3\xb6"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":7,"result":{"a":"\xff"}}',
        b'{"jsonrpc":"2.0","id":7,"result":{"a":1',
        b'[{"jsonrpc":"2.0","id":3,"result":{}}]',
        b"no message",
    ],
)
def test_a_buffer_says_what_its_bytes_say(frame: bytes) -> None:
    assert decode(bytearray(frame)) == decode(frame)
