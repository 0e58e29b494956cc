"""What a template writes is what the ordinary writer writes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.wire import legacy
from observant_host.wire.envelope import ClientInfo, Stamp
from observant_host.wire.templates import Template, template

STAMP = Stamp(
    version="2026-07-28",
    capabilities={"elicitation": {"form": {}}, "experimental": {"a%d": {}}},
    client_info=ClientInfo("100 % ours", "1"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def modern(name: str, number: int, arguments: Raw, trace: str | None, token: int | None) -> bytes:
    params = {"name": name, "arguments": arguments}
    return STAMP.request(number, "tools/call", params, trace, None, token)


def old(name: str, number: int, arguments: Raw, trace: str | None, token: int | None) -> bytes:
    params = {"name": name, "arguments": arguments}
    return legacy.request(number, "tools/call", params, progress_token=token)


def filled(made: Template, number: int, arguments: Raw, trace_id: int, span_id: int) -> bytes:
    holes: tuple[object, ...] = (number, arguments)
    holes += (trace_id, span_id, True) if made.traced else ()
    return made.text % (holes + ((number,) if made.numbered else ()))


@pytest.mark.parametrize(("writer", "traced"), [(modern, True), (modern, False), (old, False)])
@pytest.mark.parametrize("numbered", [True, False])
@given(
    name=st.text(),
    number=st.integers(1, 2**62),
    arguments=st.dictionaries(st.text(), VALUES, max_size=4),
    trace_id=st.integers(1, 2**128 - 1),
    span_id=st.integers(1, 2**64 - 1),
)
def test_it_writes_the_same_bytes(
    writer: object,
    traced: bool,
    numbered: bool,
    name: str,
    number: int,
    arguments: dict[str, object],
    trace_id: int,
    span_id: int,
) -> None:
    def write(number: int, arguments: Raw, trace: str | None, token: int | None) -> bytes:
        frame: bytes = writer(name, number, arguments, trace, token)  # type: ignore[operator]
        return frame

    raw = Raw(msgspec.json.encode(arguments))
    made = template(write, traced=traced, numbered=numbered)
    assert made is not None
    trace = f"00-{trace_id:032x}-{span_id:016x}-01" if traced else None
    expected = write(number, raw, trace, number if numbered else None)
    assert filled(made, number, raw, trace_id, span_id) == expected


@pytest.mark.parametrize(
    "words",
    ["observant_host.template.traceparent", "7310580239147160583"],
)
def test_there_is_none_for_a_tool_that_is_called_as_a_hole_is(words: str) -> None:
    def write(number: int, arguments: Raw, trace: str | None, token: int | None) -> bytes:
        return modern(words, number, arguments, trace, token)

    assert template(write, traced=True, numbered=True) is None


def test_there_is_none_where_the_holes_come_in_another_order() -> None:
    def write(number: int, arguments: Raw, _trace: str | None, token: int | None) -> bytes:
        return b"%b %d" % (bytes(arguments), number)

    assert template(write, traced=False, numbered=False) is None
