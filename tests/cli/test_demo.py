"""The demo keeps its promises, and says so when one is broken."""

from __future__ import annotations

import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from observant_host.cli import demo_command
from observant_host.cli.main import run
from observant_host.demo.servers import http_server
from observant_host.demo.story import Story, excerpt
from observant_host.demo.telling import PlainTeller

if TYPE_CHECKING:
    from pathlib import Path


def test_demo_once_shows_everything_and_ends_with_0(tmp_path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "observant_host", "demo", "--once", "--dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    out = ended.stdout
    assert ended.returncode == 0, out + ended.stderr
    assert ended.stderr == ""
    assert "\x1b" not in out
    for said in (
        "`search` went to library",
        "`web/search` went to web",
        "archive is legacy, by a valid answer to initialize",
        "allow_legacy = true",
        "it joined late, as modern",
        "its era was decided over HTTP",
        "the call after it took the new one, in the same life",
        "neither secret is in the record",
        "the era was dropped before the next was decided",
        "refused with was_modern",
        "observant_host_peer_era",
        "tools/call search",
    ):
        assert said in out, said
    assert "[BROKEN]" not in out
    assert max(map(len, out.splitlines())) <= 80 + len(str(tmp_path)), "folded for 80 columns"


def test_the_server_behind_a_url_ends_with_the_demo(tmp_path) -> None:
    """However the demo ends: its stdin is the demo's."""
    waits = (
        "import sys; from pathlib import Path; from observant_host.demo.behind_url import serving\n"
        "from observant_host.demo.stage import SERVERS, clear\n"
        "stage = clear(Path(sys.argv[1]))\n"
        "with serving(SERVERS / 'http_server.py', 'ferries', token=stage.token,"
        " log=stage.log('ferries')) as url: print(url, flush=True); sys.stdin.read()"
    )
    demo = subprocess.Popen(
        [sys.executable, "-c", waits, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with demo:
        assert demo.stdout is not None
        url = urlsplit(demo.stdout.readline())
        with socket.create_connection((url.hostname, url.port), timeout=30) as connection:
            connection.sendall(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 405")
            demo.kill()
            assert connection.recv(4096) == b"", "it ended: so its connections did"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, None),
        ("Vik", "Vik"),
        ("=?base64?w55vcmzDoWtzaMO2Zm4=?=", "Þorlákshöfn"),
        ("=?base64?w55", "=?base64?w55"),
    ],
)
def test_its_headers_are_read_as_they_are_written(said, expected) -> None:
    assert http_server.plain(said) == expected


@pytest.mark.parametrize(
    ("given", "mirrored"), [({}, {}), ({"harbour": 5}, {"Mcp-Param-Harbour": "5"})]
)
def test_its_tool_wants_its_argument(given, mirrored) -> None:
    meta = {http_server.META + "protocolVersion": http_server.REVISION}
    params = {"name": "timetable", "arguments": given, "_meta": meta}
    headers = {
        "MCP-Protocol-Version": http_server.REVISION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "timetable",
        **mirrored,
    }
    answer = http_server.answer("ferries", {"method": "tools/call", "params": params}, headers)
    assert answer[1:3] == (-32602, "the argument `harbour` must be a string")


def test_it_refuses_what_its_headers_say_otherwise() -> None:
    meta = {"_meta": {http_server.META + "protocolVersion": http_server.REVISION}}
    message = {"method": "server/discover", "params": meta}
    headers = {"MCP-Protocol-Version": http_server.REVISION, "Mcp-Method": "tools/list"}
    status, code, *_ = http_server.answer("ferries", message, headers)
    assert (status, code) == (400, -32020)


def test_a_broken_promise_is_told_and_remembered() -> None:
    lines: list[tuple[str, str]] = []
    story = Story(
        SimpleNamespace(),  # type: ignore[arg-type]  # no host is asked
        SimpleNamespace(),  # type: ignore[arg-type]
        PlainTeller(lambda text, kind: lines.append((text, kind))),
    )
    story.promise("the sky is blue", [1])
    story.promise("the sea is dry", [])
    assert story.broken == ["the sea is dry"]
    assert story.kept == 1
    assert lines == [("   [ok] the sky is blue", "kept"), ("   [BROKEN] the sea is dry", "broken")]


def test_the_excerpt_leaves_out_what_did_not_happen() -> None:
    metrics = (
        "# HELP observant_host_peer_era x\n"
        'observant_host_peer_era{era="modern",peer="a"} 1.0\n'
        'observant_host_peer_era{era="legacy",peer="a"} 0.0\n'
        "process_open_fds 3.0\n"
    )
    assert excerpt(metrics) == ['observant_host_peer_era{era="modern",peer="a"} 1.0']


def test_a_demo_without_a_folder_says_that_what_it_named_is_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def nothing(*_: object, **__: object) -> int:
        return 0

    monkeypatch.setattr(demo_command, "_play", nothing)
    assert run(["demo", "--once"]) == 0
    assert "--dir ./demo keeps one" in capsys.readouterr().err
    assert run(["demo", "--once", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
