from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.wire.ndjson import (
    COPIED_BYTES,
    ELLIPSIS,
    EXCERPT_HEAD,
    MAX_OVERSIZED,
    LineSplitter,
)


def split(*chunks: bytes, max_bytes: int = 1000) -> list[bytes]:
    splitter = LineSplitter(max_bytes)
    return [line for chunk in chunks for line in splitter.feed(chunk)]


def test_a_line_ends_at_byte_0x0a_only() -> None:
    text = "a\u2028b\u2029c\x85d\x1ce\rf\x0bg\x0c".encode()
    assert split(text + b"\n") == [text]


def test_a_trailing_cr_is_tolerated_and_empty_lines_are_skipped() -> None:
    assert split(b"one\r\n\r\n\n\ntwo\n") == [b"one", b"two"]


def test_a_byte_order_mark_is_dropped_at_the_very_start_only_even_in_pieces() -> None:
    assert split(b"\xef", b"\xbb\xbf{}\n\xef\xbb\xbf{}\n") == [b"{}", b"\xef\xbb\xbf{}"]


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=8))
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes]) -> None:
    stream = b"".join(b"x" + line + b"y\n" for line in lines)
    whole = split(stream)
    assert whole == [b"x" + line + b"y" for line in lines]
    assert split(*(stream[at : at + 1] for at in range(len(stream)))) == whole


@pytest.mark.parametrize("size", [65535, 65536, 65537, 131072, 300_000])
def test_a_line_at_the_usual_buffer_limits_is_whole_and_the_next_is_not_glued_to_it(
    size: int,
) -> None:
    line = b"x" * size
    stream = line + b"\nnext\n"
    chunks = [stream[at : at + 4096] for at in range(0, len(stream), 4096)]
    assert split(*chunks, max_bytes=1 << 20) == [line, b"next"]


def test_a_line_of_exactly_the_bound_passes_and_one_byte_more_does_not() -> None:
    splitter = LineSplitter(10)
    assert splitter.feed(b"0123456789\n0123456789A\nnext\n") == [b"0123456789", b"next"]
    assert splitter.take_oversized() == [b"0123456789A" + ELLIPSIS]


def test_an_oversized_line_is_dropped_unbuffered_and_leaves_512_bytes_of_head_and_tail() -> None:
    splitter = LineSplitter(2000)
    assert splitter.feed(b"H" * 1000) == []
    for _ in range(1000):
        assert splitter.feed(b"m" * 1000) == []
    assert splitter.take_oversized() == []
    assert splitter.feed(b"T" * 200 + b"\nnext\n") == [b"next"]
    (excerpt,) = splitter.take_oversized()
    assert len(excerpt) == 512
    assert excerpt == b"H" * EXCERPT_HEAD + ELLIPSIS + b"T" * 108
    assert splitter.take_oversized() == []
    assert not splitter._line


def test_excerpts_are_bounded_in_number() -> None:
    splitter = LineSplitter(3)
    splitter.feed(b"12345\n" * (MAX_OVERSIZED + 10))
    assert len(splitter.take_oversized()) == MAX_OVERSIZED


def test_what_is_unterminated_at_the_end_is_handed_out_once() -> None:
    splitter = LineSplitter(10)
    splitter.feed(b"done\nrest")
    assert splitter.end() == b"rest"
    assert splitter.end() is None
    splitter.feed(b"much too long a line")
    assert splitter.end() is None
    assert len(splitter.take_oversized()) == 1


def test_a_line_in_very_many_chunks_takes_no_quadratic_time() -> None:
    """40,000 chunks of one line: copying what came before each time would move 200 GB."""
    splitter = LineSplitter(1 << 30)
    start = time.process_time()
    for _ in range(40_000):
        splitter.feed(b"x" * 256)
    (line,) = splitter.feed(b"\n")
    assert len(line) == 40_000 * 256
    assert time.process_time() - start < 3


def test_a_line_that_dribbles_in_costs_its_bytes_and_not_an_object_for_each() -> None:
    splitter = LineSplitter(10_000_000)
    tracemalloc.start()
    try:
        for _ in range(200_000):
            splitter.feed(b"xy")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * 400_000
    assert splitter.feed(b"\n") == [b"xy" * 200_000]


def test_a_large_line_is_in_memory_once_and_a_small_one_is_bytes() -> None:
    splitter = LineSplitter(1 << 20)
    large = b"x" * (2 * COPIED_BYTES)
    assert splitter.feed(large[:1000]) == []
    begun = splitter.feed(large[1000:])
    assert begun == []
    gathered, small = splitter.feed(b"\nsm") + splitter.feed(b"all\r\n")
    assert isinstance(gathered, bytearray)
    assert gathered == large
    assert (type(small), small) == (bytes, b"small")


def test_a_large_line_too_loses_its_mark_and_its_carriage_return() -> None:
    splitter = LineSplitter(1 << 20)
    large = b"x" * (2 * COPIED_BYTES)
    assert splitter.feed(b"\xef\xbb\xbf" + large) == []
    (line,) = splitter.feed(b"\r\n")
    assert line == large


def test_carriage_returns_and_empty_lines_go_in_every_chunk() -> None:
    splitter = LineSplitter(100)
    assert splitter.feed(b"first\n") == [b"first"]
    assert splitter.feed(b"second\r\n\r\n\nthird\r\n") == [b"second", b"third"]
