"""A result on its way up: what its revision left out is added, nothing else is touched."""

from __future__ import annotations

import pytest
from msgspec import Raw

from observant_host.errors import CallFacts
from observant_host.routing.call_result import CallResult
from observant_host.service.mcp.results import complete, contents


def result(raw: bytes, *, attempts: int = 1) -> CallResult:
    return CallResult(Raw(raw), CallFacts("n", attempts=attempts))


def said(response: object) -> bytes:
    whole: bytes = response.whole()  # type: ignore[attr-defined]
    prefix = b'{"jsonrpc":"2.0","id":1,"result":'
    assert whole.startswith(prefix)
    assert whole.endswith(b"}")
    return whole[len(prefix) : -1]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"resultType":"complete"}', b'{"resultType":"complete"}'),
        (b"{}", b'{"resultType":"complete"}'),
        (b" { } ", b'{"resultType":"complete" } '),
        (b'{ "a": 1.50 }', b'{"resultType":"complete", "a": 1.50 }'),
        (b'{"resultType":null,"a":1}', b'{"resultType":"complete","resultType":null,"a":1}'),
    ],
)
def test_a_result_without_a_type_becomes_a_complete_one(raw: bytes, expected: bytes) -> None:
    assert said(complete(1, result(raw))) == expected


def test_what_is_no_object_goes_on_as_it_is() -> None:
    assert said(complete(1, result(b"[1]"))) == b"[1]"


def test_a_result_known_to_have_its_type_is_not_looked_into_again() -> None:
    raw = Raw(b'{"not":"looked at"}')
    known = CallResult(raw, CallFacts("t"), typed=True)
    assert said(complete(1, known)) == bytes(raw)


COMPLETE = b'"resultType":"complete"'


@pytest.mark.parametrize(
    ("raw", "attempts", "private", "expected"),
    [
        (
            b'{"resultType":"complete","ttlMs":5,"cacheScope":"public"}',
            1,
            False,
            b'{"resultType":"complete","ttlMs":5,"cacheScope":"public"}',
        ),
        (b'{"a":1}', 1, False, b'{%b,"ttlMs":0,"cacheScope":"private","a":1}' % COMPLETE),
        (
            b'{"resultType":"complete","ttlMs":5,"a":1}',
            1,
            False,
            b'{"ttlMs":0,"cacheScope":"private","resultType":"complete","a":1}',
        ),
        (
            b'{"resultType":"complete","ttlMs":5,"cacheScope":"public","a":1}',
            0,
            False,
            b'{"ttlMs":0,"cacheScope":"public","resultType":"complete","a":1}',
        ),
        (
            b'{"resultType":"complete","ttlMs":5,"cacheScope":"public","a":1}',
            1,
            True,
            b'{"ttlMs":5,"cacheScope":"private","resultType":"complete","a":1}',
        ),
        (b"[1]", 1, False, b"[1]"),
    ],
)
def test_contents_always_say_how_long_and_for_whom_they_may_be_kept(
    raw: bytes, attempts: int, private: bool, expected: bytes
) -> None:
    assert said(contents(1, result(raw, attempts=attempts), private=private)) == expected
