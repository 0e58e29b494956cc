"""What of a value a person may see, and what the masker must know."""

from __future__ import annotations

import pytest

from observant_host.config import values
from observant_host.config.effective import secrets_of, shown_value
from observant_host.config.shown import (
    argv_secrets,
    is_reference,
    shown_argv,
    shown_secret,
    shown_text,
    shown_url,
    url_secrets,
    worth_masking,
)
from tests.config.reading import read


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://x.example/mcp", "https://x.example/mcp"),
        (
            "https://u:p@x.example:8/mcp?key=abc&n=1#frag",
            "https://***@x.example:8/mcp?key=***&n=***",
        ),
        ("https://tok@x.example", "https://***@x.example"),
        ("https://x.example?flag", "https://x.example?flag=***"),
        ("https://${HOST}/mcp?k=${KEY}", "https://${HOST}/mcp?k=***"),
        ("no url at all", "no url at all"),
    ],
)
def test_a_url_is_shown_without_user_and_query_values(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["npx", "-y", "@scope/pkg"], ["npx", "-y", "@scope/pkg"]),
        (["--token", "abcd", "x"], ["--token", "***", "x"]),
        (["--api-key=abcd"], ["--api-key=***"]),
        (["--key", "${K}"], ["--key", "${K}"]),
        (
            ["-e", "GITHUB_TOKEN=abcd", "-e", "GITHUB_TOKEN"],
            ["-e", "GITHUB_TOKEN=***", "-e", "GITHUB_TOKEN"],
        ),
        (["--header", "Authorization: Bearer abcd"], ["--header", "Authorization: ***"]),
        (["--header", "X-Api-Key:${K}"], ["--header", "X-Api-Key:${K}"]),
        (["postgres://u:p@h/db"], ["postgres://***@h/db"]),
        (["--dsn=postgres://u:p@h/db?sslkey=a"], ["--dsn=postgres://***@h/db?sslkey=***"]),
        (["ghp_abcdefgh"], ["***"]),
        (["Bearer abcd"], ["***"]),
        (['{"apiKey": "abcd"}'], ["***"]),
        (['{"depth": 3}'], ['{"depth": 3}']),
        (["${X:-abcd}"], ["${X:-***}"]),
        (["--monkey", "banana", "--keyboard=us"], ["--monkey", "banana", "--keyboard=us"]),
        (["--token", "--verbose"], ["--token", "***"]),
    ],
)
def test_arguments_are_shown_without_the_values_of_telling_options(
    words: list[str], shown: list[str]
) -> None:
    assert shown_argv(words) == shown


@pytest.mark.parametrize(
    ("words", "secrets"),
    [
        (["npx", "-y"], []),
        (["--token", "abcd", "x"], ["abcd"]),
        (["--api-key=abcd"], ["abcd", "abcd"]),
        (["Authorization: Bearer abcd"], ["Bearer abcd", "abcd"]),
        (["ghp_abcdefgh"], ["ghp_abcdefgh"]),
        (["postgres://us:pw@h/db"], ["us", "pw"]),
    ],
)
def test_the_masker_learns_what_is_masked_in_arguments(
    words: list[str], secrets: list[str]
) -> None:
    assert [one for one in argv_secrets(words) if one] == secrets


def test_the_masker_learns_what_a_url_hides_as_written_and_decoded() -> None:
    found = set(url_secrets("https://us%20er:pw@h/x?k=a%2Fb&flag"))
    assert {"us%20er", "us er", "pw", "a%2Fb", "a/b"} <= found
    assert url_secrets("http://[bad") == ["http://[bad"]


def test_a_bare_reference_is_no_secret_but_anything_else_in_its_place_is() -> None:
    assert is_reference("${A_1}")
    assert is_reference("${env:A}")
    assert not is_reference("${A:-x}")
    assert [shown_secret(t) for t in ("${A}", "", "x", "Bearer ${A}")] == ["${A}", "", "***", "***"]


def test_text_with_a_url_in_it_is_shown_without_what_the_url_hides() -> None:
    assert shown_text("see 'https://u:p@h/x' now") == "see 'https://***@h/x' now"


def test_short_and_common_values_are_not_masked_everywhere() -> None:
    assert worth_masking(["abc", "true", "Production", "abcd", "abcd", "abcdef", ""]) == (
        "abcdef",
        "abcd",
    )


def test_a_value_of_another_type_in_a_secret_place_is_masked() -> None:
    assert shown_value(values.SECRET, 12345) == "***"
    assert shown_value(values.ARGS, [1, "--token", 2]) == ["1", "--token", "***"]
    assert shown_value(values.FLAG, True) is True


def test_a_header_teaches_the_masker_its_bare_token_too() -> None:
    assert secrets_of(values.SECRET, "Bearer abcd", ()) == ["Bearer abcd", "abcd"]
    assert secrets_of(values.TEXT, "abcd", ()) == []


def test_paths_and_languages_in_env_are_shown_to_nobody_but_not_masked_everywhere() -> None:
    assembled = read(
        '[servers.a]\ncommand = "x"\nenv = { HOME = "/home/x", TOKEN = "abcd" }\n'
        '[tokens.t]\nenv = "efgh"\n'
    )
    assert assembled.entries["servers", "a", "env", "HOME"].value == "***"
    assert assembled.secrets == ("abcd", "efgh")


def test_shown_values_are_effective_but_never_what_a_reference_brought_in() -> None:
    assembled = read(
        '[host]\nstartup_deadline_s = "2m"\n[servers.a]\ncommand = "${HOME}/x"\n'
        'args = ["${SECRET_ARG}"]\ncwd = "${SECRET_ARG}"\n',
        variables={"HOME": "/home/x", "SECRET_ARG": "s3cret"},
    )
    shown = {path: entry.value for path, entry in assembled.entries.items()}
    assert shown["host", "startup_deadline_s"] == 120.0
    assert shown["servers", "a", "command"] == "/home/x/x"
    assert shown["servers", "a", "args"] == ["${SECRET_ARG}"]
    assert shown["servers", "a", "cwd"] == "${SECRET_ARG}"
    assert assembled.secrets == ("s3cret",)
