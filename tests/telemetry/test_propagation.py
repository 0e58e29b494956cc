"""W3C Trace Context, as it travels in `_meta`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from observant_host.telemetry.propagation import TraceContext, new_span_id, new_trace_id, parse

GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_context_survives_the_way_out_and_in() -> None:
    context = TraceContext(new_trace_id(), new_span_id(), sampled=True)
    assert parse(context.traceparent()) == context


FORKING = """
import os
from observant_host.telemetry.propagation import new_trace_id
for _ in range(2):
    if os.fork() == 0:
        os.write(1, b"%x " % new_trace_id())
        os._exit(0)
os.wait(), os.wait()
"""


def test_two_workers_of_a_program_that_forks_give_different_ids() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, check=True, timeout=60
    )
    assert len(set(done.stdout.split())) == 2


def test_the_specifications_example_is_read() -> None:
    context = parse(GOOD, "congo=t61rcWkgMzE")
    assert context is not None
    assert context.trace_hex == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert context.span_hex == "00f067aa0ba902b7"
    assert context.sampled
    assert context.tracestate == "congo=t61rcWkgMzE"


def test_a_later_version_with_more_behind_it_is_read() -> None:
    context = parse(GOOD.replace("00-", "cc-", 1) + "-what-the-future-brings")
    assert context is not None
    assert context.sampled


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        "",
        "ff" + GOOD[2:],
        GOOD + "-more",
        GOOD + "\n",
        GOOD.upper(),
        GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        GOOD.replace("00f067aa0ba902b7", "0" * 16),
        GOOD[:-1],
    ],
)
def test_what_is_no_traceparent_is_none(wrong: object) -> None:
    assert parse(wrong) is None


def test_a_tracestate_that_is_too_long_or_no_text_is_left_out() -> None:
    assert parse(GOOD, "x" * 513) == parse(GOOD)
    assert parse(GOOD, ["x=1"]) == parse(GOOD)
    for wrong in ("a=\udcff", "a=ö", "a=1\r\n", "a=\0"):  # bytes of a header come like the first
        assert parse(GOOD, wrong) == parse(GOOD)
    spaced = parse(GOOD, "a=1,\tb=2, c=3")
    assert spaced is not None
    assert spaced.tracestate == "a=1,\tb=2, c=3"


def test_contexts_compare_by_their_ids_not_by_where_they_came_from() -> None:
    plain = TraceContext(1, 2, sampled=True)
    assert plain == TraceContext(1, 2, sampled=True, origin=object())
    assert hash(plain) == hash(TraceContext(1, 2, sampled=True, origin=object()))
    assert plain != TraceContext(1, 3, sampled=True)
    assert plain != "something else"
