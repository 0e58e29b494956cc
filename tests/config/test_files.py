"""Finding and reading: given, by variable, or the user's own; never what lies in the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from observant_host.config.model import HttpServer, StdioServer
from observant_host.config_files import (
    INSERT_MAX_BYTES,
    TOML_MAX_BYTES,
    Surroundings,
    default_state_dir,
    find,
    load,
    load_clients,
)
from observant_host.errors import ConfigError
from tests.support import canary

if TYPE_CHECKING:
    from pathlib import Path

JSON = '{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}'


def around(folder: Path, **variables: str) -> Surroundings:
    return Surroundings({"HOME": str(folder / "home"), **variables}, folder, folder / "home")


def refused(path: Path | None, surroundings: Surroundings) -> str:
    with pytest.raises(ConfigError) as error:
        load(path, around=surroundings)
    return str(error.value)


def test_given_wins_over_the_variable_and_that_over_the_users_own(tmp_path: Path) -> None:
    own = tmp_path / "home/.config/observant-host/observant-host.toml"
    own.parent.mkdir(parents=True)
    own.touch()
    given = around(tmp_path, OBSERVANT_HOST_CONFIG="by-variable.toml")
    assert find("given.toml", given) == tmp_path / "given.toml"
    assert find(None, given) == tmp_path / "by-variable.toml"
    assert find(None, around(tmp_path)) == own
    elsewhere = around(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    assert str(tmp_path / "xdg/observant-host") in refused(None, elsewhere)


def test_what_lies_in_the_current_folder_is_named_and_not_used(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(JSON)
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(JSON)
    said = refused(None, around(tmp_path))
    assert "`observant-host init --from .mcp.json`" in said
    assert "`observant-host init --from .cursor/mcp.json`" in said
    assert "nothing in the current folder is used by itself" in said
    (tmp_path / "observant-host.toml").write_text("version = 1")
    assert "say --config observant-host.toml or" in refused(None, around(tmp_path))
    for lying in (".mcp.json", ".cursor/mcp.json", "observant-host.toml"):
        (tmp_path / lying).unlink()
    assert "`observant-host init` makes one" in refused(None, around(tmp_path))


def test_a_desktop_clients_file_may_be_given_whatever_its_name(tmp_path: Path) -> None:
    for name in ("clients.json", "settings"):
        (tmp_path / name).write_text(JSON)
        loaded = load(tmp_path / name, around=around(tmp_path))
        assert [server.name for server in loaded.config.servers] == ["git"]
        assert loaded.files == (tmp_path / name,)


def test_imports_are_relative_to_the_file_and_may_hold_references(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "conf/a.json").write_text(JSON)
    (tmp_path / "home/b.json").write_text(JSON.replace('"git"', '"b"'))
    toml = tmp_path / "conf/oh.toml"
    toml.write_text('[host]\nimport = ["${NAME:-a}.json", "~/b.json"]\n')
    loaded = load(toml, around=around(tmp_path))
    assert [server.name for server in loaded.config.servers] == ["git", "b"]
    assert loaded.files == (toml, tmp_path / "conf/a.json", tmp_path / "home/b.json")
    toml.write_text('[host]\nimport = ["${NAME}"]\n')
    assert f"{toml}:2: host.import the variable NAME is not set" in refused(toml, around(tmp_path))
    toml.write_text('[host]\nimport = ["none.json"]\n')
    said = refused(toml, around(tmp_path))
    assert f"{toml}:2: host.import names {tmp_path}/conf/none.json, which is not there" in said


def test_an_env_file_is_read_under_the_servers_own_variables(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=file\nB=${A}\n")
    entry = '"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"A": "own"}'
    path = tmp_path / ".vscode/mcp.json"
    path.parent.mkdir()
    path.write_text('{"servers": {"a": {' + entry + "}}}")
    (server,) = load(path, around=around(tmp_path)).config.servers
    assert isinstance(server.launch, StdioServer)
    assert server.launch.env == {"A": "own", "B": "${A}"}
    path.write_text('{"servers": {"a": {"command": "x", "envFile": 5}}}')
    (server,) = load(path, around=around(tmp_path)).config.servers
    assert server.problem == f"{path}: a.envFile: it is not a path"


def test_folders_of_the_user_are_filled_in_and_shown(tmp_path: Path) -> None:
    toml = tmp_path / "oh.toml"
    toml.write_text('[host]\ncache_dir = "cache"\n')
    given = around(tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    loaded = load(toml, around=given)
    assert loaded.config.host.state_dir == str(tmp_path / "state/observant-host")
    assert loaded.config.host.cache_dir == str(tmp_path / "cache")
    assert loaded.assembled.entries["host", "state_dir"].value == loaded.config.host.state_dir
    assert default_state_dir(around(tmp_path)) == tmp_path / "home/.local/state/observant-host"


def test_on_other_platforms_the_folders_are_the_platforms(tmp_path: Path) -> None:
    mac = Surroundings({}, tmp_path, tmp_path, platform="darwin")
    assert "observant-host" in str(mac.folder("config"))


def test_the_process_is_looked_at_where_nothing_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_state_dir() == tmp_path / "observant-host"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("x.toml", b"#" * (TOML_MAX_BYTES + 1), "is too large to be a configuration"),
        ("x.toml", b"\xff", "is not UTF-8 text"),
        ("x.json", b"{", "is not JSON"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(data)
    assert said in refused(tmp_path / name, around(tmp_path))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"x" * (INSERT_MAX_BYTES + 1), "is too large"),
        (b"\xff", "is not UTF-8 text"),
    ],
)
def test_a_secret_file_that_cannot_be_used_turns_that_server_off(
    tmp_path: Path, data: bytes | None, said: str
) -> None:
    if data is not None:
        (tmp_path / "secret").write_bytes(data)
    toml = tmp_path / "oh.toml"
    toml.write_text('[servers.a]\ncommand = "x"\nenv = { A = "${file:secret}" }\n')
    (server,) = load(toml, around=around(tmp_path)).config.servers
    assert server.problem is not None
    assert said in server.problem


def test_headers_that_name_files_keep_their_places(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret-s3cret\n")
    toml = tmp_path / "oh.toml"
    toml.write_text(
        '[servers.a]\nurl = "https://a.example/mcp"\n'
        'headers = { Authorization = "Bearer ${file:secret}", X-Plain = "x" }\n'
    )
    (server,) = load(toml, around=around(tmp_path)).config.servers
    assert isinstance(server.launch, HttpServer)
    assert server.launch.headers["Authorization"] == "Bearer s3cret-s3cret"
    where = str(tmp_path / "secret")
    assert server.launch.header_files == {"Authorization": ("Bearer ", where, "")}


def test_clients_files_can_be_read_together(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(JSON.replace('"git"', f'"{name}"'))
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    loaded = load_clients(paths, around(tmp_path))
    assert [server.name for server in loaded.config.servers] == ["a", "b"]


def test_every_planted_secret_is_known_to_the_masker(tmp_path: Path) -> None:
    from observant_host.telemetry.masking import Masker

    path = canary.plant(tmp_path)
    given = Surroundings(canary.environment(tmp_path), tmp_path, tmp_path)
    masker = Masker(load(path, around=given).secrets)
    never_read = {"broken key", "other broken key", "token file"}
    shown = {p: masker.text(f"x {s} y") for p, s in canary.SECRETS.items() if p not in never_read}
    assert {place for place, text in shown.items() if text != "x *** y"} == set()


def test_a_refused_file_shows_no_secret(tmp_path: Path) -> None:
    path = canary.plant_broken(tmp_path)
    said = refused(path, Surroundings(canary.environment(tmp_path), tmp_path, tmp_path))
    assert "servers.a.env.A expects text; seen: a list" in said
    canary.assert_silent(said)
