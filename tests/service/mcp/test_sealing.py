"""What callers carry: it opens for whom and what it was sealed, whole, and in no other way."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.config import ServiceSettings
from observant_host.errors import ConfigError
from observant_host.service.mcp import sealing
from observant_host.service.mcp.key_file import keys_of
from observant_host.service.mcp.sealing import PREFIX, Round, Sealer, digest_of, flaw, read_keys

OLD, NEW = b"o" * 32, b"n" * 32
ROUND = Round("ann", "files", "tools/call", b"digest", 1, 2_000_000_000, state="")
TEXTS = st.text(max_size=40)

rounds = st.builds(
    Round,
    principal=TEXTS,
    server=TEXTS,
    method=TEXTS,
    digest=st.binary(max_size=32),
    number=st.integers(0, 8),
    expires=st.integers(0, 2**40),
    state=st.none() | TEXTS,
    parked=st.none() | TEXTS,
    instance=st.none() | TEXTS,
    trace=st.none() | TEXTS,
)


@given(rounds)
def test_what_was_sealed_opens_as_it_was(content: Round) -> None:
    assert Sealer([NEW]).open(Sealer([NEW]).seal(content)) == content


@given(st.sampled_from([None, "", "a", "\u0000", 'say "hi"', "é\U0001f600", " x "]))
def test_the_servers_own_state_stays_the_same_string_and_absent_stays_absent(
    state: str | None,
) -> None:
    opened = Sealer([NEW]).open(Sealer([NEW]).seal(msgspec.structs.replace(ROUND, state=state)))
    assert opened is not None
    assert opened.state == state
    assert (opened.state is None) == (state is None)


def test_every_flipped_bit_makes_it_worthless() -> None:
    sealer = Sealer([NEW])
    text = sealer.seal(ROUND)
    for place, char in enumerate(text):
        for bit in range(7):
            other = chr(ord(char) ^ 1 << bit)
            assert sealer.open(text[:place] + other + text[place + 1 :]) is None, (place, bit)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda b: PREFIX + b.hex()))
def test_what_is_not_ours_does_not_open(text: str) -> None:
    assert Sealer([NEW]).open(text) is None


@pytest.mark.parametrize(
    "change", ["cut", "longer", "padded", "spaced", "version", "upper", "huge"]
)
def test_other_writings_of_the_same_do_not_open(change: str) -> None:
    text = Sealer([NEW]).seal(ROUND)
    changed = {
        "cut": text[:-1],
        "longer": text + "A",
        "padded": text + "=",
        "spaced": text + "\n",
        "version": "oh2." + text.removeprefix(PREFIX),
        "upper": text.upper(),
        "huge": text + "A" * sealing.MAX_SEALED,
    }[change]
    assert Sealer([NEW]).open(changed) is None


def test_a_new_key_is_taken_into_use_without_losing_what_is_on_its_way() -> None:
    before, during, after = Sealer([OLD]), Sealer([NEW, OLD]), Sealer([NEW])
    old, new = before.seal(ROUND), during.seal(ROUND)
    assert during.open(old) == during.open(new) == after.open(new) == ROUND
    assert before.open(new) is None
    assert after.open(old) is None


def test_no_two_sealings_of_the_same_are_alike() -> None:
    sealer = Sealer([NEW])
    assert len({sealer.seal(ROUND) for _ in range(100)}) == 100


@pytest.mark.parametrize("keys", [[], [b"short"], [OLD, NEW, OLD]])
def test_other_keys_are_refused(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Sealer(keys)


def test_something_else_under_the_same_key_is_no_round() -> None:
    sealer = Sealer([NEW])
    other = msgspec.structs.replace(ROUND, expires="soon")
    assert sealer.open(sealer.seal(other)) is None


GOOD: dict[str, Any] = {
    "principal": "ann",
    "method": "tools/call",
    "server": "files",
    "digest": b"digest",
    "now": 1_999_999_999.0,
}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, None),
        ({"principal": "bob"}, "somebody else"),
        ({"method": "prompts/get"}, "another request"),
        ({"digest": b"other"}, "another request"),
        ({"server": "mail"}, "another server"),
        ({"now": 2_000_000_000.0}, "expired"),
    ],
)
def test_it_is_good_for_one_request_of_one_caller_for_some_time(
    change: dict[str, Any], why: str | None
) -> None:
    found = flaw(ROUND, **{**GOOD, **change})
    assert (found is None) if why is None else (found is not None and why in found)


def test_a_retry_may_write_the_same_parameters_in_another_way_but_no_others() -> None:
    first = {"name": Raw(b'"t"'), "arguments": Raw(b'{"a": 1, "b": [1.5, "\\u00e9"]}')}
    again = {"arguments": Raw('{"b":[1.5,"é"],"a":1}'.encode()), "name": Raw(b'"t"')}
    more = {**again, "inputResponses": Raw(b"{}"), "requestState": Raw(b'"x"'), "_meta": Raw(b"{}")}
    assert digest_of(first) == digest_of(again) == digest_of(more)
    for other in (b'{"b":[1.5,"e"],"a":1}', b'{"b":[1.5,"\xc3\xa9"],"a":2}', b"{}", b"null"):
        assert digest_of({**again, "arguments": Raw(other)}) != digest_of(first)
    assert digest_of({"a": Raw(b"1e400")}) != digest_of({"a": Raw(b"1e401")})


def test_a_key_file_has_one_or_two_keys_and_comments() -> None:
    one, two = (base64.b64encode(key).decode() for key in (NEW, OLD))
    assert read_keys(f"# new\n{one}\n\n# old\n  {two}  \n") == (NEW, OLD)
    safe = base64.urlsafe_b64encode(bytes(range(224, 256))).decode()
    assert read_keys(safe) == (bytes(range(224, 256)),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "0 keys"),
        (b"# only\n", "0 keys"),
        (b"a\nb\nc\n", "3 keys"),
        (b"c2hvcnQ=\n", "openssl rand -base64 32"),
        (b"!!!\n", "openssl rand -base64 32"),
        (b"\xff\xfe", "no text"),
    ],
)
def test_a_bad_key_file_is_named_with_its_setting_and_never_quoted(
    tmp_path: Any, text: bytes, why: str
) -> None:
    path = tmp_path / "key"
    path.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        keys_of(ServiceSettings(state_key_file=str(path)))
    assert f"service.state_key_file: {path}: " in str(caught.value)
    assert why in str(caught.value)
    assert "c2hvcnQ" not in str(caught.value)


def test_a_missing_key_file_is_an_error_and_none_is_a_key_of_this_run(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        keys_of(ServiceSettings(state_key_file=str(tmp_path / "none")))
    assert keys_of(ServiceSettings()) != keys_of(ServiceSettings())
