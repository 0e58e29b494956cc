from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.wire.jsonrpc import Broken, recover
from observant_host.wire.ndjson import ELLIPSIS, MAX_OVERSIZED
from observant_host.wire.sse import MAX_NAME_BYTES, MAX_PIECES, Event, EventSplitter


def split(*chunks: bytes, max_event_bytes: int = 10_000) -> list[Event]:
    splitter = EventSplitter(max_event_bytes)
    return [event for chunk in chunks for event in splitter.feed(chunk)]


def message(data: bytes) -> Event:
    return Event("message", data)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lf_crlf_and_lone_cr_end_lines(end: bytes) -> None:
    stream = end.join([b"event: x", b"data: 1", b"", b"data: 2", b"", b""])
    assert split(stream) == [Event("x", b"1"), message(b"2")]
    assert split(*(stream[at : at + 1] for at in range(len(stream)))) == split(stream)


def test_ends_of_lines_may_be_mixed() -> None:
    assert split(b"data: 1\rdata: 2\r\ndata: 3\n\r\n") == [message(b"1\n2\n3")]


def test_an_event_is_seen_at_the_cr_that_ends_it_and_not_with_the_next_chunk() -> None:
    splitter = EventSplitter(1000)
    assert splitter.feed(b"data: 1\r\n\r") == [message(b"1")]
    assert splitter.feed(b"") == []
    assert splitter.feed(b"\ndata: 2\r\n\r") == [message(b"2")]
    assert splitter.feed(b"\n") == []


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_no_other_character_ends_a_line(odd: str) -> None:
    text = f'{{"text":"a{odd}b"}}'.encode()
    assert split(b"data: " + text + b"\n\n") == [message(text)]


def test_data_lines_are_joined_with_one_optional_space_taken_off_each() -> None:
    stream = b'data: {\ndata:"a": 1,\ndata:  "b": 2\ndata\ndata:}\n\n'
    assert split(stream) == [message(b'{\n"a": 1,\n "b": 2\n\n}')]


def test_characters_cut_in_two_by_chunks_stay_whole() -> None:
    text = "日本語 🙂".encode()
    stream = b"data: " + text + b"\n\n"
    assert split(*(stream[at : at + 1] for at in range(len(stream)))) == [message(text)]


def test_priming_events_give_their_id_and_pause_and_no_message() -> None:
    assert split(b"id: 7\nretry: 500\ndata:\n\n") == [Event("message", b"", "7", 500)]
    assert split(b"id: 8\n\n") == [Event("message", b"", "8", None)]
    assert split(b"retry: 100\n\n") == [Event("message", b"", None, 100)]
    assert split(b"event: ping\n\n") == [Event("ping", b"")]
    assert split(b"id\n\n") == [Event("message", b"", "", None)]


def test_nothing_of_one_event_is_left_in_the_next() -> None:
    stream = b"event: x\nid: 1\nretry: 5\ndata: 1\n\ndata: 2\n\n"
    assert split(stream) == [Event("x", b"1", "1", 5), message(b"2")]


def test_comments_and_unknown_fields_are_no_events_and_comments_are_counted() -> None:
    splitter = EventSplitter(1000)
    assert splitter.feed(b": hello\n\n:\n\nfoo: bar\n data: 1\n\n\n\n") == []
    assert splitter.feed(b"da: 1\ndata: 2\n: between\ndata: 3\n\n") == [message(b"2\n3")]
    assert splitter.comments == 3


def test_a_byte_order_mark_is_dropped_at_the_very_start_only() -> None:
    bom = b"\xef\xbb\xbf"
    assert split(bom + b"data: 1\n\n") == [message(b"1")]
    assert split(bom[:1], bom[1:], b"data: 1\n\n") == [message(b"1")]
    assert split(b"data: 1\n\n" + bom + b"data: 2\n\n") == [message(b"1")]
    assert split(b": c\n" + bom + b"data: 2\n\n") == []
    splitter = EventSplitter(1000)
    assert splitter.feed(bom + b": hello\ndata: 1\n\n") == [message(b"1")]
    assert splitter.comments == 1


def test_an_event_that_is_not_ended_is_none() -> None:
    assert split(b"data: 1\n") == []
    assert split(b"data: 1") == []
    assert split(b"") == []


@pytest.mark.parametrize("retry", [b"", b"-5", b"1.5", b"soon", b"5 ", b"9999999999", "٥".encode()])
def test_a_pause_that_is_no_sane_number_is_ignored(retry: bytes) -> None:
    assert split(b"retry: " + retry + b"\n\n") == []
    assert split(b"retry: 5\nretry: " + retry + b"\n\n") == [Event("message", b"", None, 5)]


def test_an_id_with_a_null_or_without_bounds_is_ignored_and_a_name_is_cut() -> None:
    assert split(b"id: a\0b\ndata: 1\n\n") == [message(b"1")]
    assert split(b"id: " + b"x" * (MAX_NAME_BYTES + 1) + b"\ndata: 1\n\n") == [message(b"1")]
    (event,) = split(b"event: " + b"x" * 5000 + b"\ndata: 1\n\n")
    assert event.event == "x" * MAX_NAME_BYTES
    assert split(b"event:\ndata: 1\n\n") == [message(b"1")]
    assert split(b"event: \xff\nid: \xff\ndata: 1\n\n") == [Event("\ufffd", b"1", "\ufffd")]


FIELDS = st.sampled_from(
    [b"data: a", b"data:", b"data", b"event: e", b"id: 1", b"retry: 2", b": c", b"odd: x", b""]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(FIELDS, max_size=12), ENDS, st.lists(st.integers(0, 120), max_size=4))
def test_events_come_out_whole_however_they_are_cut(
    lines: list[bytes], end: bytes, cuts: list[int]
) -> None:
    stream = b"".join(line + end for line in lines)
    at = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[begin:stop] for begin, stop in pairwise(at)]
    expected = split(stream.replace(end, b"\n"))
    assert split(stream) == expected
    assert split(*pieces) == expected
    assert split(*(stream[at : at + 1] for at in range(len(stream)))) == expected


@given(st.binary(max_size=200), st.integers(1, 60))
def test_any_bytes_are_bearable(stream: bytes, max_event_bytes: int) -> None:
    for event in split(stream, stream, max_event_bytes=max_event_bytes):
        assert len(event.data) <= max_event_bytes


# Bounds


def test_the_bound_is_that_of_one_event_and_begins_anew_with_each() -> None:
    event = b"data: " + b"x" * 90 + b"\n\n"
    assert len(split(event * 2000, max_event_bytes=100)) == 2000
    half = b"data: " + b"x" * 40 + b"\n"
    assert split(half + half + b"\n", max_event_bytes=100) == [
        message(b"x" * 40 + b"\n" + b"x" * 40)
    ]
    assert split(half + half + half + b"\n", max_event_bytes=100) == []


def test_an_oversized_event_is_dropped_whole_and_what_follows_is_read() -> None:
    splitter = EventSplitter(2000)
    assert splitter.feed(b'data: {"result":"' + b"H" * 1000) == []
    for _ in range(1000):
        assert splitter.feed(b"m" * 1000) == []
    assert splitter.take_oversized() == []
    (event,) = splitter.feed(
        b'"\n: not of it\nevent: x\ndata: ,"jsonrpc":"2.0","id":7}\n\ndata: 1\n\n'
    )
    assert event == message(b"1")
    (excerpt,) = splitter.take_oversized()
    assert len(excerpt) <= 512
    assert excerpt.startswith(b'{"result":"HHH')
    assert ELLIPSIS in excerpt
    assert splitter.take_oversized() == []
    assert splitter.comments == 1


@pytest.mark.parametrize("lines", [1, 40])
def test_the_id_of_an_oversized_answer_can_be_recovered(lines: int) -> None:
    text = [b'{"jsonrpc":"2.0",', b'"id":7,"result":"', *[b"x" * 200] * 200, b'"}']
    joint = b"" if lines == 1 else b"\ndata: "
    splitter = EventSplitter(1000)
    splitter.feed(b"data: " + joint.join(text) + b"\n\n")
    (excerpt,) = splitter.take_oversized()
    assert recover(excerpt) == Broken(7, "the reply was longer than max_message_bytes allows")


def test_excerpts_are_bounded_in_number() -> None:
    splitter = EventSplitter(8)
    splitter.feed(b"data: 12345\n\n" * (MAX_OVERSIZED + 10))
    assert len(splitter.take_oversized()) == MAX_OVERSIZED


def test_an_endless_comment_is_not_kept() -> None:
    splitter = EventSplitter(1000)
    tracemalloc.start()
    try:
        splitter.feed(b": ")
        for _ in range(2000):
            splitter.feed(b"x" * 1000)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 100_000
    assert splitter.feed(b"\ndata: 1\n\n") == [message(b"1")]


def test_an_event_in_very_many_chunks_or_lines_takes_no_quadratic_time() -> None:
    splitter = EventSplitter(1 << 30)
    start = time.process_time()
    splitter.feed(b"data: ")
    for _ in range(20_000):
        splitter.feed(b"x" * 256)
    (event,) = splitter.feed(b"\n\n")
    assert len(event.data) == 20_000 * 256
    for _ in range(10_000):
        splitter.feed(b"data:" + b"x" * 1000 + b"\n")
    (event,) = splitter.feed(b"\n")
    assert len(event.data) == 10_000 * 1001 - 1
    assert time.process_time() - start < 3


def test_an_event_of_tiny_lines_costs_its_bytes_and_not_an_object_for_each() -> None:
    splitter = EventSplitter(10_000_000)
    tracemalloc.start()
    try:
        for _ in range(10_000):
            splitter.feed(b"data:xy\n")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * 30_000
    (event,) = splitter.feed(b"\n")
    assert event.data == b"\n".join([b"xy"] * 10_000)


@pytest.mark.parametrize("pieces", range(2 * MAX_PIECES + 4))
def test_pieces_of_any_number_make_one_line_and_lines_of_any_number_one_event(
    pieces: int,
) -> None:
    splitter = EventSplitter(10_000)
    splitter.feed(b"data: ")
    for at in range(pieces):
        splitter.feed(b"%d" % (at % 10))
    (event,) = splitter.feed(b"\n" + b"data: y\n" * pieces + b"\n")
    digits = "".join(str(at % 10) for at in range(pieces)).encode()
    assert event.data == b"\n".join([digits, *[b"y"] * pieces])
