"""Whatever stands in a file, reading it ends in a configuration or in sentences."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from observant_host.config import keys
from observant_host.config.parse import read_toml
from observant_host.config.suggest import toml_key, toml_value
from observant_host.errors import ConfigError
from observant_host.foreign_config import read_foreign
from observant_host.foreign_config.key_map import KEY_MAP
from tests.config.reading import read

LETTERS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=12)
PLAIN = st.one_of(
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    LETTERS,
    st.sampled_from(["${A}", "${A:-x}", "${", "$${", "sse", "stdio", "http://x", "5s", "off"]),
)
NESTED = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LETTERS, inner, max_size=3)
)
KNOWN = st.sampled_from(sorted({*KEY_MAP, *keys.SERVER.keys})) | LETTERS
ENTRY = st.dictionaries(KNOWN, NESTED | st.none(), max_size=6) | NESTED


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(LETTERS, ENTRY, max_size=3))
def test_any_foreign_servers_cost_themselves_at_most(servers: dict[str, object]) -> None:
    data = msgspec.json.encode({"mcpServers": {**servers, "sound": {"command": "x"}}})
    with suppress(ConfigError):
        found = read_foreign(data, name="x.json", folder="/f", places={})
        config = read("", imported=found.servers).config
        assert next(one for one in config.servers if one.name == "sound").problem is None


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(ConfigError):
        read_foreign(data, name="x.json", folder="/f")
    with suppress(ConfigError):
        read_toml(data, name="x.toml", folder="/f")


TABLE = st.sampled_from(["host", "service", "telemetry", "defaults", "servers.a", "tokens.t"])


@settings(max_examples=150, deadline=None)
@given(TABLE, st.dictionaries(KNOWN, NESTED, max_size=5))
def test_any_toml_is_a_configuration_or_a_list_of_mistakes(
    table: str, entries: dict[str, object]
) -> None:
    lines = [f"{toml_key(key)} = {toml_value(value)}" for key, value in entries.items()]
    with suppress(ConfigError):
        read("\n".join([f"[{table}]", *lines]))
