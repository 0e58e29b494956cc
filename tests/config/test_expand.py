"""References are replaced, escaped, or refused with their name and the fix."""

from __future__ import annotations

import pytest

from observant_host.config.expand import Expanded, UnresolvedError, expand, file_parts
from tests.config.reading import lookup, problems, read, server

LOOKUP = lookup({"A": "one", "EMPTY": "", "HOME": "/home/x"}, {"token.txt": "t0ken\n"})
PLACES = {"workspaceFolder": "/w", "/": "/"}


@pytest.mark.parametrize(
    ("text", "expected", "values"),
    [
        ("plain $A {A} %A%", "plain $A {A} %A%", ()),
        ("x${A}y${A}", "xoneyone", ("one", "one")),
        ("${env:A}", "one", ("one",)),
        ("${EMPTY}", "", ("",)),
        ("${EMPTY:-two}", "two", ()),
        ("${B:-two words: yes}", "two words: yes", ()),
        ("${B:-}", "", ()),
        ("${A:-two}", "one", ("one",)),
        ("${HOME}/x", "/home/x/x", ()),
        ("${HOME:-/tmp}/x", "/home/x/x", ()),
        ("${file:token.txt}", "t0ken", ("t0ken",)),
        ("$${A}", "${A}", ()),
        ("$${", "${", ()),
        ("${workspaceFolder}${/}x", "/w/x", ()),
    ],
)
def test_a_reference_is_replaced(text: str, expected: str, values: tuple[str, ...]) -> None:
    assert expand(text, LOOKUP, folder="/f", places=PLACES) == Expanded(expected, values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${B}", "the variable B is not set; set it, or give a default: `${B:-default}`"),
        ("${env:B}", "the variable B is not set"),
        ("${file:none}", "the file none cannot be read"),
        ("${input:key}", "asked by another client"),
        ("${command:x}", "`${command:x}` is no reference known here"),
        ("${}", "`${}` is no reference known here"),
        ("${A", "`${` without its `}`; write `$${`"),
        ("${A:-${B}}", "`${` without its `}`"),
    ],
)
def test_what_cannot_be_resolved_is_named_with_the_fix(text: str, said: str) -> None:
    with pytest.raises(UnresolvedError) as refused:
        expand(text, LOOKUP, folder="/f", places=PLACES)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("plain ${A}", ()),
        ("${file:token.txt}", ("", "/f/token.txt", "")),
        ("Bearer ${file:/run/t}", ("Bearer ", "/run/t", "")),
        ("${A} ${file:~/t}$${file:x}${file:u}!", ("one ", "/home/x/t", "${file:x}", "/f/u", "!")),
    ],
)
def test_what_comes_from_files_can_be_read_again(text: str, parts: tuple[str, ...]) -> None:
    assert file_parts(text, LOOKUP, folder="/f", places=PLACES) == parts


def test_an_unresolved_reference_turns_only_that_server_off() -> None:
    assembled = read(
        '[servers.a]\ncommand = "x"\nenv = { T = "${NOPE}" }\n[servers.b]\ncommand = "${P}"\n',
        variables={"P": "python3"},
    )
    off, on = server(assembled, "a"), server(assembled, "b")
    assert off.problem is not None
    assert off.problem.startswith("oh.toml:3: servers.a.env.T cannot be used: the variable NOPE")
    assert on.problem is None
    assert on.launch is not None


def test_an_unresolved_reference_outside_a_server_refuses_the_file() -> None:
    assert problems('[host]\nstate_dir = "${NOPE}"') == (
        (
            "oh.toml:2: host.state_dir cannot be used: the variable NOPE is not set; "
            "set it, or give a default: `${NOPE:-default}`"
        ),
    )


def test_imports_are_shown_with_the_rest_of_the_host_table() -> None:
    assembled = read('[host]\nimport = ["a.json"]')
    assert assembled.config.host.imports == ("a.json",)
    assert assembled.entries["host", "import"].value == ("a.json",)


def test_numbers_may_come_through_references() -> None:
    assembled = read('[host]\nstartup_deadline_s = "${D:-3s}"', variables={})
    assert assembled.config.host.startup_deadline_s == 3.0
    assert "expects seconds" in problems('[host]\nstartup_deadline_s = "${D:-x}"')[0]
