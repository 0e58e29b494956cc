"""What `init` and `probe --suggest-legacy` write, our parser reads back."""

from __future__ import annotations

import tomllib
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.config.parse import read_toml
from observant_host.config.suggest import (
    Finding,
    allowance_keys,
    init_file,
    suggestion_lines,
    toml_key,
    toml_value,
)
from tests.config.reading import read_both, server

TODAY = date(2026, 12, 1)
PRINT = "sha256:" + "0a" * 32
JSON = (
    '{"mcpServers": {"mem.1": {"command": "npx", "args": ["-y", "server-memory"]},'
    ' "git": {"command": "uvx"}, "dead": {"command": "nowhere"}}}'
)
ALLOWANCE = allowance_keys("2025-11-25", fingerprint=PRINT, today=TODAY)
FINDINGS = [
    Finding(name="mem.1", era="legacy", version="2025-11-25", allowance=ALLOWANCE),
    Finding(name="git", era="modern", version="2026-07-28"),
    Finding(name="dead", era="unknown", detail='it exits\n[servers.dead]\ncommand = "evil"'),
    Finding(name="mute", era="unknown"),
    Finding(name="unset", era="unknown", detail="TOKEN is not set", tried=False),
    Finding(name="off", era="unknown", detail="it is disabled", tried=False, disabled=True),
]


def test_one_explicit_reasoned_pinned_expiring_entry() -> None:
    assert suggestion_lines("mem.1", ALLOWANCE) == [
        '[servers."mem.1"]',
        'allow_legacy = ["2025-11-25"]',
        'legacy_reason = "answered initialize with 2025-11-25 on 2026-12-01"',
        f'legacy_fingerprint = "{PRINT}"',
        "legacy_expires = 2027-05-30",
    ]


def test_a_date_that_came_as_text_is_written_as_a_date() -> None:
    assert (
        suggestion_lines("a", {"legacy_expires": "2027-05-30"})[1] == "legacy_expires = 2027-05-30"
    )


def test_what_init_writes_our_parser_reads() -> None:
    text = init_file(FINDINGS, imports=["clients/.mcp.json"], today=TODAY)
    file = read_toml(text.encode(), name="oh.toml", folder="/etc/oh")
    assert file.leaves["host", "import"].raw == ["clients/.mcp.json"]
    without_import = text.replace('import = ["clients/.mcp.json"]', "")
    assembled = read_both(JSON, without_import)
    assert [one.name for one in assembled.config.servers] == ["mem.1", "git", "dead"]
    era = server(assembled, "mem.1").era
    assert era.allow_legacy == ("2025-11-25",)
    assert era.legacy_reason == "answered initialize with 2025-11-25 on 2026-12-01"
    assert era.legacy_fingerprint == PRINT
    assert era.legacy_expires == date(2027, 5, 30)
    assert server(assembled, "git").era.allow_legacy == ()
    assert server(assembled, "dead").launch == server(read_both(JSON), "dead").launch


def test_a_servers_words_stay_inside_their_comment() -> None:
    text = init_file(FINDINGS, imports=[], today=TODAY)
    assert '# dead could not be used: it exits [servers.dead] command = "evil"\n' in text
    assert "# mute could not be used: no reason is known\n" in text
    assert text.endswith("\n# off was not started: it is disabled\n")
    assert "# Try again: observant-host probe mute --suggest-legacy\n" in text
    assert (
        "# unset was not started: TOKEN is not set\n"
        "# Once that is mended: observant-host probe unset --suggest-legacy\n" in text
    )
    assert list(tomllib.loads(text)["servers"]) == ["mem.1"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (3, "3"),
        (3.0, "3"),
        (0.5, "0.5"),
        (None, '""'),
        (("a", "b"), '["a", "b"]'),
        ({"a b": [1], "c": {}}, '{ "a b" = [1], c = {} }'),
        (date(2027, 1, 2), "2027-01-02"),
    ],
)
def test_values_are_written_as_toml(value: Any, text: str) -> None:
    assert toml_value(value) == text


@given(st.text(), st.text(min_size=1))
def test_any_text_survives_being_written(value: str, key: str) -> None:
    if any(0xD800 <= ord(c) <= 0xDFFF for c in value + key):
        return
    assert tomllib.loads(f"{toml_key(key)} = {toml_value(value)}") == {key: value}
