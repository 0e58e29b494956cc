"""The fingerprint names a way to start a server; a rotated secret does not change it."""

from __future__ import annotations

import pytest

from observant_host.config import HttpServer, StdioServer, fingerprint
from tests.config.reading import read, server

BASE = '[servers.a]\ncommand = "x"\nargs = ["-t", "${T:-one}"]\nenv = { A = "${T:-two}" }\n'


def of(toml: str, **variables: str) -> str:
    return server(read(toml, variables=variables), "a").fingerprint


def test_a_rotated_secret_does_not_change_it() -> None:
    assert of(BASE, T="first") == of(BASE, T="second") == of(BASE)
    assert of(BASE.replace("two", "three")) == of(BASE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"x"', '"y"'),
        ('"-t"', '"-u"'),
        ("T:-one", "U:-one"),
        ("{ A =", "{ B ="),
        ("env =", 'cwd = "w"\nenv ='),
        ("env =", 'env_inherit = ["C"]\nenv ='),
    ],
)
def test_another_command_line_folder_or_variable_name_changes_it(old: str, new: str) -> None:
    assert of(BASE.replace(old, new)) != of(BASE)


def test_a_secret_moved_from_env_to_the_inherited_environment_keeps_it() -> None:
    moved = BASE.replace('env = { A = "${T:-two}" }', 'env_inherit = ["A"]')
    assert of(moved) == of(BASE)


def test_a_url_counts_without_user_query_and_fragment() -> None:
    plain = fingerprint(HttpServer(url="https://x.example/mcp"))
    assert fingerprint(HttpServer(url="https://u:p@X.example/mcp?key=1#f")) == plain
    assert fingerprint(HttpServer(url="https://x.example/other")) != plain
    assert fingerprint(HttpServer(url="https://[bad/mcp?k=1")) == fingerprint(
        HttpServer(url="https://[bad/mcp?k=2")
    )
    assert of('[servers.a]\nurl = "https://x.example/mcp?k=${K:-1}"') == plain


def test_it_is_a_sha256_and_an_unreadable_launch_matches_no_other() -> None:
    nothing, some = fingerprint(None), fingerprint(StdioServer(command=("x",)))
    assert nothing != some
    assert all(one.startswith("sha256:") and len(one) == 71 for one in (nothing, some))


def test_a_command_written_as_a_list_is_the_same_command() -> None:
    assert of('[servers.a]\ncommand = ["x", "y"]') == of('[servers.a]\ncommand = "x"\nargs = ["y"]')
