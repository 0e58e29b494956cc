"""No configured secret leaves, in whatever clothes."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.telemetry.masking import Cleaner, Masker

SECRET = 'p@ss "wörd"/+1\n'


def test_a_masker_without_secrets_changes_nothing() -> None:
    assert Masker().text("anything") == "anything"
    assert Masker([]).bytes(b"anything") == b"anything"


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        quote(SECRET, safe=""),
        quote_plus(SECRET),
    ],
)
def test_a_secret_is_masked_in_every_form_that_peers_write_it(form: str) -> None:
    masker = Masker([SECRET])
    assert masker.text(f"before {form} after") == "before *** after"
    assert masker.bytes(f"before {form} after".encode()) == b"before *** after"


@pytest.mark.parametrize("around", ["", "x", "user:", "longer prefix "])
def test_a_secret_inside_base64_is_masked_wherever_it_stands(around: str) -> None:
    secret = "sk-1234567890abcdef"
    encoded = base64.b64encode(f"{around}{secret}{around}".encode()).decode()
    masked = Masker([secret]).text(f"Authorization: Basic {encoded}")
    first, last = -(-len(around) * 8 // 6), (len(around) + len(secret)) * 8 // 6
    inside = encoded[first:last]
    assert "***" in masked
    assert not any(inside[at : at + 5] in masked for at in range(len(inside) - 4))


def test_the_longest_secret_is_masked_whole() -> None:
    masker = Masker(["abcd", "abcdefgh"])
    assert masker.text("abcdefgh abcd") == "*** ***"


def test_values_that_are_ordinary_words_are_left_alone() -> None:
    assert Masker(["on", "1", "dev", ""]).text("on 1 dev") == "on 1 dev"


def test_a_masker_learns_secrets_of_servers_that_come_later() -> None:
    masker = Masker(["first-secret"])
    cleaner = Cleaner(masker)
    assert cleaner.text("second-secret") == "second-secret"
    masker.learn(["second-secret"])
    assert cleaner.text("second-secret first-secret") == "*** ***"
    assert cleaner.text("second-secret") == "***"


@given(st.lists(st.text(min_size=4, max_size=30), min_size=1, max_size=5), st.text(max_size=50))
def test_no_secret_is_ever_seen_after_masking(secrets: list[str], text: str) -> None:
    masked = Masker(secrets).text(text.join(secrets))
    bare = masked.replace("***", "\0")
    assert not any(secret in bare for secret in secrets if "\0" not in secret)


def test_cleaning_masks_before_it_cuts() -> None:
    cleaner = Cleaner(Masker(["0123456789"]), limit=8)
    assert cleaner.text("ab0123456789cd") == "ab***cd"
    assert cleaner.text("0123456789" * 3) == "***" * 2 + "**"


def test_cleaning_takes_out_what_rewrites_a_terminal() -> None:
    cleaner = Cleaner(Masker())
    assert cleaner.text("a\x1b[2Jb\x07c\td\ne") == "a[2Jbc\td\ne"


def test_the_cache_of_cleaned_texts_is_bounded() -> None:
    cleaner = Cleaner(Masker())
    for number in range(10_000):
        cleaner.text(f"text {number}")
    assert len(cleaner._cache) <= 4096


def test_lent_secrets_are_the_present_ones_and_those_before() -> None:
    masker = Masker()
    for token in ("first-token", "second-token", "third-token"):
        masker.lend("a server", [token])
    masker.lend("another", ["other-token"])
    said = masker.text("first-token second-token third-token other-token")
    assert said == "first-token *** *** ***"


def test_what_was_lent_can_be_taken_back() -> None:
    masker = Masker()
    masker.lend("a", ["token"])
    masker.lend("a", [])
    assert masker.text("a token, anything") == "a ***, anything"
    masker.lend("a", ["one more"])
    assert masker.text("a token, one more") == "a token, ***"
