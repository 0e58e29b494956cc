"""Each kind of value accepts what it says it expects, and nothing else."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from observant_host.config import values
from observant_host.config.values import Kind, MismatchError, from_text, seen, type_name
from observant_host.wire import revisions

GOOD: list[tuple[Kind, Any, Any]] = [
    (values.SECONDS_ABOVE_0, 2, 2.0),
    (values.SECONDS_ABOVE_0, "500ms", 0.5),
    (values.SECONDS_ABOVE_0, "2m", 120.0),
    (values.SECONDS_ABOVE_0, " 1.5 h ", 5400.0),
    (values.SECONDS_ABOVE_0, "1d", 86400.0),
    (values.SECONDS_ABOVE_0, "5", 5.0),
    (values.SECONDS_FROM_0, 0, 0.0),
    (values.MILLISECONDS, 250, 250.0),
    (values.MILLISECONDS, "2s", 2000.0),
    (values.MILLISECONDS, "500ms", 500.0),
    (values.MILLISECONDS, "300", 300.0),
    (values.SIZE_BYTES, 7, 7),
    (values.SIZE_BYTES, "7", 7),
    (values.SIZE_BYTES, "16MiB", 16 * 1024**2),
    (values.SIZE_BYTES, "2 kb", 2000),
    (values.SIZE_BYTES, "1GB", 10**9),
    (values.MEGABYTES, "off", None),
    (values.MEGABYTES, 512, 512.0),
    (values.MEGABYTES, "2GiB", 2048.0),
    (values.URL, "http://localhost:8700/mcp?x=1", "http://localhost:8700/mcp?x=1"),
    (values.URL, "HTTPS://x.example", "HTTPS://x.example"),
    (values.ADDRESS, "[::1]:0", "[::1]:0"),
    (values.DAY, date(2027, 1, 2), date(2027, 1, 2)),
    (values.DAY, "2027-01-02", date(2027, 1, 2)),
    (values.ALLOWANCE, True, revisions.LEGACY),
    (values.ALLOWANCE, False, ()),
    (values.ALLOWANCE, ["2024-11-05"], ("2024-11-05",)),
    (values.COMMAND, "npx", ("npx",)),
    (values.COMMAND, ["npx", "-y"], ("npx", "-y")),
    (values.COMMAND_LINE, ["npx", "-y"], ("npx", "-y")),
    (values.TEXTS, ["a"], ("a",)),
    (values.TEXT, "", ""),
    (values.FILLED, "x", "x"),
    (values.number(least=1, whole=True), 3, 3),
    (values.number(least=0, most=1), 1, 1.0),
    (values.choice("a", "b"), "b", "b"),
    (values.choices("a", "b"), ["a"], ("a",)),
]

BAD: list[tuple[Kind, Any]] = [
    (values.SECONDS_ABOVE_0, 0),
    (values.SECONDS_ABOVE_0, -1),
    (values.SECONDS_ABOVE_0, True),
    (values.SECONDS_ABOVE_0, "2 weeks"),
    (values.SECONDS_ABOVE_0, float("inf")),
    (values.SECONDS_ABOVE_0, float("nan")),
    (values.SECONDS_ABOVE_0, []),
    (values.MILLISECONDS, 0),
    (values.SIZE_BYTES, 0),
    (values.SIZE_BYTES, 1.5),
    (values.SIZE_BYTES, True),
    (values.SIZE_BYTES, "many"),
    (values.MEGABYTES, 0),
    (values.MEGABYTES, "on"),
    (values.MEGABYTES, False),
    (values.URL, "ftp://x"),
    (values.URL, "x.example"),
    (values.URL, "http://"),
    (values.URL, "http://[bad"),
    (values.URL, "http://x:port"),
    (values.URL, 3),
    (values.ADDRESS, "localhost"),
    (values.ADDRESS, "localhost:99999"),
    (values.ADDRESS, 8700),
    (values.DAY, "soon"),
    (values.DAY, datetime(2027, 1, 1)),
    (values.DAY, 2027),
    (values.ALLOWANCE, ["2026-07-28"]),
    (values.ALLOWANCE, "2024-11-05"),
    (values.COMMAND, " "),
    (values.COMMAND, []),
    (values.COMMAND, [1]),
    (values.COMMAND, 1),
    (values.COMMAND_LINE, "x"),
    (values.COMMAND_LINE, []),
    (values.TEXTS, "a"),
    (values.TEXTS, ["a", 1]),
    (values.TEXT, "a\0b"),
    (values.FILLED, " "),
    (values.FLAG, "true"),
    (values.number(least=1, whole=True), 1.0),
    (values.number(least=1, whole=True), 0),
    (values.number(least=0, most=1), 2),
    (values.number(least=0), True),
    (values.choice("a"), "c"),
    (values.choice("a"), ["a"]),
    (values.choices("a"), ["c"]),
    (values.matching(values.FINGERPRINT, "x"), "sha256:00"),
]


@pytest.mark.parametrize(("kind", "raw", "typed"), GOOD)
def test_a_value_of_its_kind_is_read(kind: Kind, raw: Any, typed: Any) -> None:
    assert kind.read(raw) == typed


@pytest.mark.parametrize(("kind", "raw"), BAD)
def test_a_value_of_another_kind_is_refused(kind: Kind, raw: Any) -> None:
    with pytest.raises(MismatchError):
        kind.read(raw)


@pytest.mark.parametrize(
    ("kind", "text", "raw"),
    [
        (values.TEXT, "[1]", "[1]"),
        (values.FLAG, "true", True),
        (values.SIZE_BYTES, "12", 12),
        (values.SECONDS_ABOVE_0, "2m", "2m"),
        (values.TEXTS, "a, b", ["a", "b"]),
        (values.TEXTS, '["a,b"]', ["a,b"]),
        (values.ALLOWANCE, "true", True),
        (values.ALLOWANCE, "2024-11-05,2025-03-26", ["2024-11-05", "2025-03-26"]),
        (values.DAY, "2027-01-02", date(2027, 1, 2)),
    ],
)
def test_a_variable_is_read_as_its_kind_means_it(kind: Kind, text: str, raw: Any) -> None:
    assert from_text(kind, text) == raw


def test_types_have_a_persons_words() -> None:
    raws: list[Any] = [True, "x", 1, 1.0, [], {}, None, date(2027, 1, 1), b""]
    assert [type_name(raw) for raw in raws] == [
        "true or false",
        "text",
        "a number",
        "a number",
        "a list",
        "a table",
        "null",
        "a date",
        "bytes",
    ]


def test_what_was_seen_is_quoted_only_where_it_is_harmless() -> None:
    assert seen(values.FLAG, "yes") == "text ('yes')"
    assert seen(values.SECRET, "s3cret") == "text"
    assert seen(values.URL, "s3cret") == "text"
    assert seen(values.ARGS, "s3cret") == "text"
    assert seen(values.TEXTS, [1]) == "a list"
