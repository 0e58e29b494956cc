"""What is the same about two heads, and what is not."""

from __future__ import annotations

import pytest

from observant_host.decisions.http_heads import DATE, MAX_HEAD_BYTES, Heads, head_of

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
PLAIN = ("POST /mcp HTTP/1.1", "Host: h", "Content-Length: 5", "X: y")


def made(*lines: str, body: str = "") -> bytes:
    return "\r\n".join([*lines, "", body]).encode()


def test_a_head_says_where_its_body_begins_and_how_long_that_is() -> None:
    data = made(*PLAIN, body="12345")
    head = head_of(data)
    assert head is not None
    assert (data[head.begin :], head.length, head.varied) == (b"12345", 5, None)


@pytest.mark.parametrize(
    "lines",
    [
        ("POST / HTTP/1.1", "Content-Length: 77", "A: b"),
        ("POST / HTTP/1.1", "Content-Length: 5", f"traceparent: {TRACE}", "A: b"),
        ("POST / HTTP/1.1", f"traceparent: {TRACE}", "Content-Length: 5", "A: b"),
        ("POST / HTTP/1.1", f"Traceparent: {TRACE}", "A: b", "content-length: 123"),
        ("POST / HTTP/1.1", "A: b", "Content-Length: 5", f"Traceparent: {TRACE}"),
    ],
)
def test_only_the_length_and_the_trace_may_differ(lines: tuple[str, ...]) -> None:
    first = head_of(made(*lines))
    others = [one.replace(": 5", ": 12345678").replace(TRACE, OTHER) for one in lines]
    second = head_of(made(*others, body="x"))
    assert first is not None
    assert second is not None
    assert first.digest == second.digest
    traced = any(TRACE in one for one in lines)
    assert (first.varied, second.varied) == ((TRACE, OTHER) if traced else (None, None))
    for number, line in enumerate(lines):
        unlike = [*lines[:number], line + " ", *lines[number + 1 :]]
        found = head_of(made(*unlike))
        assert found is None or found.digest != first.digest


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\n",
        made("GET / HTTP/1.1", "Host: h"),
        made("POST / HTTP/1.1", "Content-Length: "),
        made("POST / HTTP/1.1", "Content-Length: +5"),
        made("POST / HTTP/1.1", "Content-Length: 5, 5"),
        made("POST / HTTP/1.1", "Content-Length: 123456789"),
        made("POST / HTTP/1.1", "X-Content-Length: 5"),
        made("POST / HTTP/1.1", "CONTENT-LENGTH: 5"),
        made("POST / HTTP/1.1", "Host: h", body="\r\nContent-Length: 5\r\n\r\n"),
    ],
)
def test_what_says_no_plain_length_is_no_head_of_ours(data: bytes) -> None:
    assert head_of(data) is None


@pytest.mark.parametrize("value", [TRACE.upper(), TRACE[:-1], TRACE + "-x", "", " " + TRACE])
def test_a_trace_that_is_not_as_it_must_be_is_a_field_like_others(value: str) -> None:
    head = head_of(made("POST / HTTP/1.1", f"traceparent: {value}", "Content-Length: 5"))
    none = head_of(made("POST / HTTP/1.1", f"traceparent: {TRACE}", "Content-Length: 5"))
    assert head is not None
    assert none is not None
    assert head.varied is None
    assert head.digest != none.digest


SAID = "Mon, 30 Nov 2026 10:11:04 GMT"
LATER = "Tue, 01 Dec 2026 00:00:00 GMT"


@pytest.mark.parametrize("name", ["Date", "date"])
@pytest.mark.parametrize("before", [(), ("X-Update: no",)])
def test_of_an_answer_only_the_length_and_the_date_may_differ(
    name: str, before: tuple[str, ...]
) -> None:
    lines = ("HTTP/1.1 200 OK", *before, "Content-Length: 5", f"{name}: {SAID}", "A: b")
    first = head_of(made(*lines), DATE)
    second = head_of(made(*(one.replace(SAID, LATER).replace(": 5", ": 6") for one in lines)), DATE)
    assert first is not None
    assert second is not None
    assert first.digest == second.digest
    assert (first.varied, second.varied) == (SAID, LATER)


@pytest.mark.parametrize("value", ["", "now", SAID + " ", SAID.replace("GMT", "CET"), " " + SAID])
def test_a_date_that_is_written_otherwise_is_a_field_like_others(value: str) -> None:
    head = head_of(made("HTTP/1.1 200 OK", f"Date: {value}", "Content-Length: 5"), DATE)
    assert head is not None
    assert head.varied is None


def test_a_date_in_the_body_is_no_field() -> None:
    head = head_of(made("HTTP/1.1 200 OK", "Content-Length: 5", body=f"\r\nDate: {SAID}\r\n"), DATE)
    assert head is not None
    assert head.varied is None


def test_a_second_length_is_a_field_like_others() -> None:
    """Whoever keeps something of a head has made sure that there is none."""
    one = head_of(made("POST / HTTP/1.1", "Content-Length: 5", "Content-Length: 6"))
    two = head_of(made("POST / HTTP/1.1", "Content-Length: 5", "Content-Length: 7"))
    assert one is not None
    assert two is not None
    assert one.digest != two.digest


def test_a_head_that_is_too_long_to_be_kept_is_no_head_of_ours() -> None:
    room = MAX_HEAD_BYTES - len(made(*PLAIN))
    for more, is_one in ((0, True), (1, False)):
        data = made(*PLAIN[:-1], "X: y" + "x" * (room + more), body="12345")
        assert (head_of(data) is not None) is is_one


def test_the_oldest_head_is_forgotten_first() -> None:
    heads: Heads[int] = Heads(most=2)
    found = [head_of(made("POST / HTTP/1.1", "Content-Length: 1", f"X: {n}")) for n in range(3)]
    a, b, c = (one for one in found if one is not None)
    heads.keep(a, 1)
    heads.keep(b, 2)
    heads.keep(a, 3)  # anew, so that it is the youngest
    assert (heads.find(a.digest), heads.find(b.digest), heads.find(c.digest)) == (3, 2, None)
    heads.keep(c, 4)
    assert (heads.find(a.digest), heads.find(b.digest), heads.find(c.digest)) == (3, None, 4)
