"""Flag over variable over file over import over [defaults]; each value knows where it came from."""

from __future__ import annotations

import pytest

from observant_host.config.origin import line_numbers, line_of
from observant_host.errors import ConfigError
from tests.config.reading import problems, read, read_both, server

JSON = (
    '{"mcpServers": {"git": {"command": "uvx", "args": ["a"], "env": {"A": "1111", "B": "2222"}}}}'
)


def test_each_layer_wins_over_the_one_below_it() -> None:
    toml = "[defaults]\ncall_timeout_s = 5\n[servers.git]\n"
    variables = {"OBSERVANT_HOST_SERVERS__GIT__CALL_TIMEOUT_S": "7"}
    flags = {"servers.git.call_timeout_s": "8s"}
    path = ("servers", "git", "call_timeout_s")
    own = toml + "call_timeout_s = 6\n"
    seen = []
    for text, around, given in (
        ("[servers.git]\n", {}, {}),
        (toml, {}, {}),
        (own, {}, {}),
        (own, variables, {}),
        (own, variables, flags),
    ):
        assembled = read(text + 'command = "x"\n', variables=around, flags=given)
        entry = assembled.entries[path]
        seen.append((server(assembled, "git").timing.call_timeout_s, str(entry.origin)))
    assert seen == [
        (60.0, "default"),
        (5.0, "defaults oh.toml:2"),
        (6.0, "file oh.toml:4"),
        (7.0, "variable OBSERVANT_HOST_SERVERS__GIT__CALL_TIMEOUT_S"),
        (8.0, "flag servers.git.call_timeout_s"),
    ]


def test_a_table_overlays_an_imported_server_key_by_key_and_env_entry_by_entry() -> None:
    assembled = read_both(JSON, '[servers.git]\nargs = ["b"]\nenv = { B = "3333", C = "4444" }\n')
    launch = server(assembled, "git").launch
    assert launch is not None
    assert launch.command == ("uvx", "b")  # type: ignore[union-attr]  # a stdio server
    assert launch.env == {"A": "1111", "B": "3333", "C": "4444"}  # type: ignore[union-attr]
    origins = {path: str(entry.origin) for path, entry in assembled.entries.items()}
    assert origins["servers", "git", "command"] == "import client.json"
    assert origins["servers", "git", "args"] == "file oh.toml:2"
    assert origins["servers", "git", "env", "A"] == "import client.json"


def test_imported_servers_come_first_then_the_files_own_in_order() -> None:
    toml = (
        '[servers.z]\ncommand = "x"\n[servers.git]\nenabled = false\n[servers.a]\ncommand = "x"\n'
    )
    assembled = read_both(JSON, toml)
    assert [one.name for one in assembled.config.servers] == ["git", "z", "a"]
    assert server(assembled, "git").enabled is False


def test_two_servers_of_one_name_are_an_error_that_names_both_files() -> None:
    from observant_host.foreign_config import read_foreign

    imported = tuple(
        server
        for name in ("one.json", "two.json")
        for server in read_foreign(JSON.encode(), name=name, folder="/").servers
    )
    with pytest.raises(ConfigError) as refused:
        read("", imported=imported)
    assert "two.json: the server git is also in one.json" in str(refused.value)


@pytest.mark.parametrize(
    ("variable", "text", "path", "shown"),
    [
        ("HOST__REMEMBER_MODERN", "false", ("host", "remember_modern"), False),
        ("TELEMETRY__SAMPLE_RATIO", "0.25", ("telemetry", "sample_ratio"), 0.25),
        ("SERVICE__ALLOWED_HOSTS", "a, b", ("service", "allowed_hosts"), ("a", "b")),
        ("SERVERS__MY_SRV_1__ENABLED", "false", ("servers", "my-srv.1", "enabled"), False),
        ("SERVERS__MY_SRV_1__TOOLS__DENY", "x", ("servers", "my-srv.1", "tools", "deny"), ("x",)),
        (
            "SERVERS__MY_SRV_1__ENV__Api_Key",
            "abcd",
            ("servers", "my-srv.1", "env", "Api_Key"),
            "***",
        ),
    ],
)
def test_a_variable_sets_a_key(
    variable: str, text: str, path: tuple[str, ...], shown: object
) -> None:
    toml = '[servers."my-srv.1"]\ncommand = "x"\n'
    assembled = read(toml, variables={f"OBSERVANT_HOST_{variable}": text})
    assert assembled.entries[path].value == shown
    assert str(assembled.entries[path].origin) == f"variable OBSERVANT_HOST_{variable}"


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("HOST__STATE", 'host.state is no key; did you mean "state_dir"? Allowed there: cache_dir'),
        ("HOSTS__X", 'hosts.x is no key; did you mean "host"?'),
        ("SERVERS__NOBODY__URL", "no server of that name is configured (configured: git)"),
        ("SERVERS__GIT__ZZZ", "servers.git.zzz is no key. Allowed there: ack_timeout_s"),
        ("SERVERS__GIT__ENV", "servers.git.env is no key. Allowed there: any name"),
        ("DEFAULTS__ALLOW_LEGACY", "defaults.allow_legacy is no key"),
        ("HOST__IMPORT__X", "host.import.x is no key"),
    ],
)
def test_a_variable_that_is_no_key_is_refused(variable: str, said: str) -> None:
    name = f"OBSERVANT_HOST_{variable}"
    (problem,) = problems('[servers.git]\ncommand = "x"\n', variables={name: "1"})
    assert problem.startswith(f"{name}: {said}")


def test_variables_without_two_underscores_are_no_keys() -> None:
    around = {
        "OBSERVANT_HOST_PORT": "tcp://10.0.0.1",
        "OBSERVANT_HOST_CONFIG": "x",
        "OTHER__X": "1",
    }
    assert read("", variables=around).config == read("").config


def test_an_unknown_flag_is_refused() -> None:
    (problem,) = problems("", flags={"service.lisen": "x"})
    assert 'service.lisen is no key; did you mean "listen"?' in problem


def test_a_wrong_variable_is_named() -> None:
    (problem,) = problems("", variables={"OBSERVANT_HOST_HOST__RENAME_GRACE_S": "long"})
    assert problem.startswith("OBSERVANT_HOST_HOST__RENAME_GRACE_S: host.rename_grace_s expects")


def test_lines_are_found_for_headers_keys_and_what_lies_below_them() -> None:
    lines = line_numbers(
        'a.b = 1\n[t]\nx = { y = 1 }\n[ "q.r" . s ] # c\n"k k" = 2\n'
        "[[list]]\nz=1\nbad bad = 3\na..b = 1\n[]\n"
    )
    assert lines == {
        ("a", "b"): 1,
        ("t",): 2,
        ("t", "x"): 3,
        ("q.r", "s"): 4,
        ("q.r", "s", "k k"): 5,
        ("list",): 6,
        ("list", "z"): 7,
    }
    assert line_of(("t", "x", "y"), lines) == 3
    assert line_of(("nowhere",), lines) is None
