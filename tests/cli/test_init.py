"""`init`: what it asks, what it starts, what it shows, and the file it writes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio.lowlevel
import pytest

from observant_host.cli import source
from observant_host.cli.init_command import FIRST_START_S, try_servers
from observant_host.cli.output import Screen
from observant_host.config.suggest import allowance_keys
from observant_host.config_files import Surroundings, load, load_clients
from observant_host.foreign_config.places import client_files
from tests.support import canary
from tests.support.commands import Ended, command

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from observant_host.config import HostConfig, ServerConfig

DEMO = Path(__file__).parents[2] / "observant_host/demo/servers"
LEGACY = [sys.executable, str(DEMO / "legacy_server.py"), "archive"]
MODERN = [sys.executable, str(DEMO / "modern_server.py"), "library"]


def entry(argv: list[str], **keys: Any) -> dict[str, Any]:
    return {"command": argv[0], "args": argv[1:], **keys}


def clients_file(folder: Path, name: str = ".mcp.json", **servers: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def run(folder: Path, *argv: str) -> Ended:
    return command("init", *argv, cwd=folder, env=canary.environment(folder))


def around(folder: Path) -> Surroundings:
    return Surroundings(canary.environment(folder), folder, folder)


def test_a_clients_file_becomes_a_configuration_that_is_read(tmp_path: Path) -> None:
    theirs = clients_file(
        tmp_path,
        old=entry(LEGACY),
        new=entry(MODERN),
        dead=entry([sys.executable, "-c", "raise SystemExit('no such flag')"]),
        off=entry(LEGACY, disabled=True),
        ask=entry(LEGACY, env={"A": "${input:x}"}),
    )
    before = theirs.read_bytes()
    done = run(tmp_path, "--from", ".mcp.json", "--yes")
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()[1:]}
    assert rows["old"][1:3] == ["legacy", "2025-06-18"]
    assert rows["new"][1:3] == ["modern", "2026-07-28"]
    assert [rows[name][1] for name in ("dead", "off", "ask")] == ["unknown"] * 3
    assert "no such flag" in done.stdout
    assert f"  old: {' '.join(LEGACY)}" in done.stderr
    assert "  off: not started: it is disabled" in done.stderr
    assert "wrote observant-host.toml" in done.stderr
    assert done.stderr.endswith("next: observant-host run --config observant-host.toml\n")
    assert theirs.read_bytes() == before
    written = tmp_path / "observant-host.toml"
    servers = {one.name: one for one in load(written, around=around(tmp_path)).config.servers}
    assert list(servers) == ["old", "new", "dead", "off", "ask"]
    era = servers["old"].era
    assert era.allow_legacy == ("2025-06-18",)
    assert era.legacy_reason
    assert era.legacy_fingerprint == servers["old"].fingerprint
    today = datetime.now(UTC).date()
    assert era.legacy_expires is not None
    assert era.legacy_expires - today in (timedelta(days=179), timedelta(days=180))
    assert [one.era.allow_legacy for one in servers.values()].count(()) == 4
    text = written.read_text()
    assert "# dead could not be used: " in text
    assert "# off was not started: it is disabled" in text


def test_an_existing_file_is_not_overwritten_unless_told(tmp_path: Path) -> None:
    clients_file(tmp_path, dead=entry(["false"]))
    out = tmp_path / "observant-host.toml"
    out.write_text("# mine\n")
    refused = run(tmp_path, "--from", ".mcp.json", "--yes")
    assert refused.returncode == 2
    assert "exists already; name another file with --out, or overwrite it" in refused.stderr
    assert out.read_text() == "# mine\n"
    assert run(tmp_path, "--from", ".mcp.json", "--yes", "--force").returncode == 0
    assert "Written by" in out.read_text()
    deeper = run(tmp_path, "--from", ".mcp.json", "--yes", "--out", "a/b.toml")
    assert deeper.returncode == 0
    assert f'import = ["{tmp_path}/.mcp.json"]' in (tmp_path / "a/b.toml").read_text()


def test_no_server_is_started_for_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    clients_file(tmp_path, a=entry(["touch", str(mark)]))
    (tmp_path / "c").touch()
    refused = run(tmp_path, "--from", ".mcp.json", "--yes", "--out", "c/b.toml")
    assert refused.returncode == 2
    assert "c/b.toml cannot be written" in refused.stderr
    assert "name another file with --out" in refused.stderr
    assert not mark.exists()


def test_nothing_is_started_where_nobody_can_be_asked(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    clients_file(tmp_path, a=entry(["touch", str(mark)]))
    done = run(tmp_path, "--from", ".mcp.json")
    assert done.returncode == 2
    assert "to start these servers once, give --yes" in done.stderr
    assert f"  a: touch {mark}" in done.stderr
    assert not mark.exists()
    assert not (tmp_path / "observant-host.toml").exists()


@pytest.mark.parametrize(("answer", "code", "started"), [(b"y\n", 0, True), (b"n\n", 130, False)])
def test_on_a_terminal_the_commands_are_shown_and_asked_for(
    tmp_path: Path, answer: bytes, code: int, started: bool
) -> None:
    mark = tmp_path / "started"
    clients_file(tmp_path, a=entry(["touch", str(mark)]))
    main, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "observant_host", "init", "--from", ".mcp.json"],
        cwd=tmp_path,
        env=canary.environment(tmp_path, TERM="xterm"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    os.write(main, answer)
    shown = b""
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(main)
    assert child.wait(timeout=30) == code, shown
    assert b"Start them? [y/N]" in shown
    assert mark.exists() is started


def test_the_usual_places_are_read_and_shared_names_left_out(tmp_path: Path) -> None:
    clients_file(tmp_path, ".claude.json", a=entry(["false"]))
    clients_file(tmp_path, ".cursor/mcp.json", a=entry(["false"]), b=entry(["false"]))
    clients_file(tmp_path, ".codeium/windsurf/mcp_config.json", c=entry(["false"]))
    clients_file(tmp_path, ".kiro/settings/mcp.json")
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/settings.json").write_text("{}")
    done = run(tmp_path, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(one["name"], one["era"]) for one in found["servers"]] == [
        ("a", "unknown"),
        ("c", "unknown"),
    ]
    assert found["file"] == str(tmp_path / "observant-host.toml")
    assert f"{tmp_path}/.cursor/mcp.json (Cursor) is left out: it has a as well" in done.stderr
    text = (tmp_path / "observant-host.toml").read_text()
    assert 'import = [".claude.json", ".codeium/windsurf/mcp_config.json"]' in text


def test_without_any_clients_file_what_lies_around_is_named(tmp_path: Path) -> None:
    assert "use --from FILE" in run(tmp_path, "--yes").stderr
    clients_file(tmp_path, a=entry(["false"]))
    done = run(tmp_path, "--yes")
    assert done.returncode == 2
    assert "found ./.mcp.json; to use it: init --from .mcp.json" in done.stderr
    empty = clients_file(tmp_path, "empty.json")
    assert (
        f"{empty}: no server is configured there"
        in run(tmp_path, "--yes", "--from", "empty.json").stderr
    )


def test_every_known_place_is_below_the_users_home() -> None:
    for platform in ("linux", "darwin"):
        places = dict(client_files("/home/x", platform))
        assert len(places) >= 10
        assert all(path.startswith("/home/x/") for path in places.values())
    assert "Library" in dict(client_files("/home/x", "darwin"))["Claude Desktop"]


class FakeExaminer:
    """Every server is an old one; counts how many are looked at together."""

    def __init__(self) -> None:
        self.together = self.most = 0

    async def examine(self, server: ServerConfig, *, principal: str) -> Any:
        self.together += 1
        self.most = max(self.most, self.together)
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        self.together -= 1
        assert principal == source.principal()
        assert server.timing.probe_timeout_s == FIRST_START_S
        print_ = "sha256:" + "0" * 64
        keys = allowance_keys("2024-11-05", fingerprint=print_, today=date(2026, 1, 1))
        return SimpleNamespace(
            server=server.name,
            view=SimpleNamespace(era="legacy", version="2024-11-05", tools=3),
            legacy_revision="2024-11-05",
            sentence=f"it said {canary.SECRETS['env literal']}",
            elapsed_ms=1500.0,
            suggestion=SimpleNamespace(keys=keys),
        )


def test_servers_are_tried_a_few_at_a_time_and_kept_in_order(tmp_path: Path) -> None:
    servers = {f"s{i}": entry(["x"], env={"T": canary.SECRETS["env literal"]}) for i in range(9)}
    path = clients_file(tmp_path, **servers)
    fake = FakeExaminer()

    @asynccontextmanager
    async def opens(config: HostConfig) -> AsyncIterator[Any]:
        assert len(config.servers) == 9
        yield fake

    findings = try_servers(Screen(verbosity=-1), load_clients([path], around(tmp_path)), opens)
    assert [one.name for one in findings] == list(servers)
    assert all((one.era, one.tools, one.start_s) == ("legacy", 3, 1.5) for one in findings)
    assert findings[0].allowance["allow_legacy"] == ["2024-11-05"]
    assert findings[0].detail == "it said ***"
    assert 1 < fake.most <= 4


def test_no_output_and_no_written_file_holds_a_secret(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ, sys.argv, file=sys.stderr); sys.exit(3)"
    canary.plant(tmp_path, command=[sys.executable, "-c", code])
    done = run(tmp_path, "--from", "client.json", "--yes", "--out", "new.toml")
    assert done.returncode == 0, done.stderr
    canary.assert_silent(done.stdout, done.stderr, (tmp_path / "new.toml").read_text())
