"""Other people's JSON: mapped, without meaning, not available here, unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from observant_host.config.model import HttpServer, StdioServer
from observant_host.errors import ConfigError
from observant_host.foreign_config import fitting_name, places_of
from observant_host.foreign_config.json_text import read_json
from tests.config.reading import foreign, read_both, server


def one(entry: Any, toml: str = "") -> Any:
    text = msgspec.json.encode({"mcpServers": {"a": entry}}).decode()
    return server(read_both(text, toml), "a")


def said(entry: Any) -> tuple[str, ...]:
    read = foreign(msgspec.json.encode({"mcpServers": {"a": entry}}).decode())
    return (*read.notices, *read.warnings)


@pytest.mark.parametrize(
    ("entry", "launch"),
    [
        ({"command": "x", "args": ["a", 1, True]}, StdioServer(command=("x", "a", "1", "true"))),
        (
            {"command": ["x", "y"], "environment": {"A": False}},
            StdioServer(command=("x", "y"), env={"A": "false"}),
        ),
        ({"command": {"path": "x"}}, StdioServer(command=("x",))),
        (
            {"command": "x", "workingDirectory": "w"},
            StdioServer(command=("x",), cwd="/home/x/project/w"),
        ),
        (
            {"command": "x", "env": {"A": None, "B": 1.5}},
            StdioServer(command=("x",), env={"B": "1.5"}),
        ),
        ({"command": "x", "env": None, "url": None, "headers": None}, StdioServer(command=("x",))),
        ({"command": "x", "type": "stdio", "transport": "stdio"}, StdioServer(command=("x",))),
        (
            {"url": "http://x", "type": "streamableHttp"},
            HttpServer(url="http://x", transport="http"),
        ),
        ({"uri": "http://x", "type": "remote"}, HttpServer(url="http://x")),
        ({"serverURL": "http://x", "transport": "auto"}, HttpServer(url="http://x")),
        (
            {"url": "http://x", "http_headers": {"A": "b"}},
            HttpServer(url="http://x", headers={"A": "b"}),
        ),
        (
            {"url": "http://x", "headersHelper": "pass show x"},
            HttpServer(url="http://x", headers_command=("sh", "-c", "pass show x")),
        ),
        (
            {"url": "http://x", "requestOptions": {"headers": {"A": "b"}, "timeout": 1}},
            HttpServer(url="http://x", headers={"A": "b"}),
        ),
        ({"url": "http://x", "requestOptions": {"timeout": 1}}, HttpServer(url="http://x")),
        (
            {"transport": {"type": "stdio", "command": "x", "args": ["y"], "other": 1}},
            StdioServer(command=("x", "y")),
        ),
        ({"command": "x", "source": "custom"}, StdioServer(command=("x",))),
        (
            {"command": "x", "oauth": {}, "auth": None, "sandboxEnabled": False},
            StdioServer(command=("x",)),
        ),
    ],
)
def test_a_launch_is_mapped(entry: dict[str, Any], launch: StdioServer | HttpServer) -> None:
    config = one(entry)
    assert config.problem is None
    assert config.launch == launch


@pytest.mark.parametrize(
    ("entry", "key", "value"),
    [
        ({"disabled": True}, "enabled", False),
        ({"isActive": False}, "enabled", False),
        ({"tools": ["*"]}, "tools.allow", ()),
        ({"tools": ["a"]}, "tools.allow", ("a",)),
        ({"tools": {"allow": ["a"], "deny": ["b"], "c": {}}}, "tools.deny", ("b",)),
        ({"tools": "a"}, "tools.allow", ()),
        ({"timeout": 30}, "timing.call_timeout_s", 30.0),
        ({"timeout": 30000}, "timing.call_timeout_s", 30.0),
        ({"timeout": "2m"}, "timing.call_timeout_s", 120.0),
        ({"timeout": 0}, "timing.call_timeout_s", 60.0),
        ({"required": True}, "required", True),
        ({"allow_legacy": ["2025-11-25"]}, "era.allow_legacy", ("2025-11-25",)),
        (
            {"legacy_expires": "2027-01-02"},
            "era.legacy_expires",
            __import__("datetime").date(2027, 1, 2),
        ),
    ],
)
def test_a_key_is_mapped_and_our_own_keys_are_read(
    entry: dict[str, Any], key: str, value: Any
) -> None:
    config: Any = one({"command": "x", **entry})
    assert config.problem is None
    for part in key.split("."):
        config = getattr(config, part)
    assert config == value


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"command": "x", "oauth": {"clientId": "s3cret"}}, "a.oauth: signing in by OAuth"),
        ({"command": "x", "sandboxEnabled": True}, "in a sandbox, which is not available here"),
        ({"command": "x", "type": "ws"}, "a.type: is no transport known here"),
        ({"command": "x", "type": 3}, "a.type: is no transport known here"),
        ({"command": "x", "args": "y"}, "a.args: is text; expected a list of texts"),
        ({"command": "x", "args": [{}]}, "a.args: holds a table; expected text"),
        ({"command": "x", "env": ["A=s3cret"]}, "a.env: is a list; expected an object"),
        ({"command": "x", "tools": {"deny": "s"}}, "servers.a.tools.deny expects a list of texts"),
        ({"command": 3}, "servers.a.command expects the program to start, as text"),
        ({"command": "x", "disabled": "yes"}, "servers.a.enabled expects true or false"),
        ({"url": "s3cret"}, 'servers.a.url expects a URL beginning with "http://"'),
        ({"command": "x", "url": "http://x"}, "has both `command` and `url`"),
        ({}, "has neither `command` nor `url`"),
        ("s3cret", "client.json: the server a is text; expected an object"),
        ({"command": "x", "max_in_flight": 0}, "servers.a.max_in_flight expects a whole number"),
        ({"url": "http://x", "headersHelper": 5}, "servers.a.headers_command expects"),
        ({"url": "http://x", "headers_command": "x"}, "servers.a.headers_command expects"),
    ],
)
def test_one_bad_server_costs_one_server(entry: Any, reason: str) -> None:
    text = msgspec.json.encode({"mcpServers": {"a": entry, "b": {"command": "x"}}}).decode()
    assembled = read_both(text)
    problem = server(assembled, "a").problem
    assert problem is not None
    assert reason in problem
    assert "s3cret" not in problem
    assert server(assembled, "b").problem is None


def test_an_overlay_can_mend_a_foreign_server() -> None:
    entry = {"url": "http://x/sse", "type": "sse"}
    assert one(entry).problem is not None
    mended = one(entry, '[servers.a]\nallow_legacy = ["2024-11-05"]\n')
    assert mended.problem is None
    assert mended.transport == "sse"


def test_keys_of_the_other_transport_are_only_a_warning() -> None:
    text = '{"mcpServers": {"a": {"url": "http://x", "env": {"A": "1111"}}}}'
    assembled = read_both(text)
    assert server(assembled, "a").problem is None
    assert assembled.warnings == (
        "servers.a has env, which belongs to servers with a `command` and does nothing here",
    )


def test_unknown_keys_are_warnings_with_a_hint_and_remarks_are_silent() -> None:
    assert said(
        {"command": "x", "autoAprove": [], "zzz": 1, "_comment": "x", "//": "y", "$schema": 1}
    ) == (
        'client.json: a.autoAprove is not known here and does nothing; did you mean "autoApprove"?',
        "client.json: a.zzz is not known here and does nothing",
    )
    assert said({"command": "x", "env_inherit": ["A"], "tools": {"x": 1}}) == ()


def test_shell_style_variables_are_pointed_out() -> None:
    (warning,) = said({"command": "x", "args": ["$HOME/x", "a$b", "cost: $5", "\\$X"]})
    assert "a.args holds a `$NAME`" in warning


@pytest.mark.parametrize(
    "text",
    [
        '{"servers": {"a": {"command": "x"}}}',
        '{"context_servers": {"a": {"command": "x"}}}',
        '{"mcp": {"servers": {"a": {"command": "x"}}}}',
        '{"mcp": {"a": {"command": ["x"]}, "other": 1}}',
        '{"amp.mcpServers": {"a": {"command": "x"}}}',
        '{"mcpServers": [{"name": "a", "command": "x"}, 3]}',
        '{"a": {"command": "x"}}',
        '// c\n{/* d */ "mcpServers": {"a": {"command": "x",},},}',
        "{mcpServers: {a: {command: 'x'}}}",
        '\ufeff{"mcpServers": {"a": {"command": "x"}}}',
    ],
)
def test_the_servers_are_found_wherever_a_client_keeps_them(text: str) -> None:
    (found,) = foreign(text).servers
    assert found.name == "a"


def test_servers_of_a_list_without_names_get_one() -> None:
    read = foreign(
        '{"experimental": {"modelContextProtocolServers": [{"transport": {"command": "x"}}]}}'
    )
    assert [one.name for one in read.servers] == ["server-1"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "client.json: is a list; expected an object with `mcpServers`"),
        ("{}", "client.json: holds no servers"),
        ('{"theme": {"mode": "dark"}}', "client.json: holds no servers"),
        ('{"mcp": {"enabled": true}}', "client.json: holds no servers"),
        ('{"a": s3cret}', "client.json: is not JSON: it breaks at line 1"),
        (" \n", "client.json: is empty"),
        (
            '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}',
            "the server a is there twice",
        ),
        (
            '{"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "y"}}}',
            "the server a-b is there twice",
        ),
        (
            '{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "x"}}}',
            "a is there twice",
        ),
        ("[" * 100_000, "client.json: is nested too deeply"),
    ],
)
def test_a_file_in_which_nothing_can_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        foreign(text)
    assert reason in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_file_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        read_json(b"\xff", "x.json")


def test_a_large_file_is_not_given_to_the_slow_reader() -> None:
    text = '{"mcpServers": {' + " " * 300_000 + "a: 1}}"
    with pytest.raises(ConfigError, match="at line 1, column"):
        foreign(text)


def test_a_transport_is_known_from_its_launch() -> None:
    seen = [
        one(entry).transport
        for entry in ({"command": "x"}, {"url": "http://x"}, {"url": "http://x", "type": "sse"})
    ]
    assert seen == ["stdio", "http", "sse"]


def test_doubled_keys_that_are_no_servers_are_no_business_of_ours() -> None:
    assert (
        len(foreign('{"x": {"k": 1, "k": 2}, "mcpServers": {"a": {"command": "x"}}}').servers) == 1
    )


def test_projects_without_servers_are_not_mentioned() -> None:
    text = '{"mcpServers": {}, "projects": {"/x": {"mcpServers": {}}, "/y": 1, "/z": {"a": 1}}}'
    assert foreign(text).notices == ()
    two = '{"mcpServers": {}, "projects": {"/x": {"mcpServers": {"a": {}, "b": {}}}}}'
    assert "2 more servers" in foreign(two).notices[0]


@pytest.mark.parametrize(
    ("name", "fit"),
    [
        ("git", "git"),
        ("My Server (work)", "My-Server-work"),
        ("@scope/pkg", "scope-pkg"),
        ("x" * 80, "x" * 64),
        ("!!!", "server"),
        ("日本", "server"),
    ],
)
def test_names_are_made_fit(name: str, fit: str) -> None:
    assert fitting_name(name) == fit


@pytest.mark.parametrize(
    ("folder", "workspace"),
    [("/w/p", "/w/p"), ("/w/p/.vscode", "/w/p"), ("/w/p/.kiro/settings", "/w/p"), ("/", "/")],
)
def test_the_workspace_is_the_folder_around_the_clients_own(folder: str, workspace: str) -> None:
    places = places_of(folder, "/home/x")
    assert places["workspaceFolder"] == workspace
    assert places["userHome"] == "/home/x"
