"""Commands that need a configuration, where none is named and only a running host knows one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from observant_host.cli.running_file import file_meant
from observant_host.config_files import Surroundings
from observant_host.errors import ConfigError
from tests.cli.test_bundle import unpacked
from tests.support.running import Running, command_line, config_of, file_in, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    """It serves from the user's own state folder; its file lies where nobody looks."""
    text = config_of(tmp_path, {"a": {"tools": "echo"}})
    own = tmp_path / "own" / "observant-host"
    file_in(tmp_path).write_text(text.replace(str(tmp_path / "state"), str(own)))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "empty"))
    async with running(tmp_path, watched=True) as started:
        yield started


async def test_doctor_checks_the_running_hosts_file(host: Running, tmp_path: Path) -> None:
    code, out, err = await command_line("doctor", "--json")
    checks = {one["check"]: one for one in json.loads(out)["checks"]}
    assert (code, err) == (0, "")
    assert checks["config"]["finding"] == f"{file_in(tmp_path)} is valid"
    assert "99 of 100 turns came" in checks["event loop"]["finding"]

    file_in(tmp_path).write_text("[hots]\n")
    code, out, _ = await command_line("doctor", "--json")
    (only,) = json.loads(out)["checks"]
    assert code == 3
    assert 'did you mean "host"?' in only["finding"]
    assert host.process.returncode is None


@pytest.mark.usefixtures("host")
async def test_a_bundle_holds_the_running_hosts_configuration(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    code, _, _ = await command_line("bundle", "--output", str(path))
    assert code == 0
    parts = unpacked(path)
    assert f"# {file_in(tmp_path)}" in parts["config.toml"]
    assert "servers.json" in parts

    file_in(tmp_path).write_text("[hots]\n")
    path.unlink()
    code, _, _ = await command_line("bundle", "--output", str(path))
    assert code == 0
    assert "did you mean" in unpacked(path)["doctor.json"]


@pytest.mark.usefixtures("host")
async def test_explain_knows_the_running_hosts_servers() -> None:
    code, _, err = await command_line("explain", "b")
    assert code == 2
    assert "no server `b` is configured; there are: a" in err
    assert (await command_line("explain", "a"))[0] == 0


def test_a_file_that_is_given_is_meant_though_it_is_not_there(tmp_path: Path) -> None:
    around = Surroundings({}, tmp_path, tmp_path)
    assert file_meant(tmp_path / "none.toml", around) == tmp_path / "none.toml"
    assert file_meant(None, around) is None
    own = tmp_path / ".config" / "observant-host"
    own.mkdir(parents=True)
    (own / "observant-host.toml").touch()
    assert file_meant(None, around) is None, "it is found in its place"


def test_nothing_is_meant_where_nothing_is_found(tmp_path: Path) -> None:
    from observant_host import config_files

    around = Surroundings({}, tmp_path, tmp_path)
    with pytest.raises(ConfigError, match="no configuration"):
        config_files.load(file_meant(None, around), around=around)
