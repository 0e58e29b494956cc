"""`doctor`: each verdict from its facts."""

from __future__ import annotations

import socket
import sys
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from observant_host.cli.doctor_checks import (
    Check,
    Facts,
    Folder,
    Tool,
    Url,
    all_checks,
    package_of,
)
from observant_host.cli.doctor_urls import look_at_urls
from observant_host.config import (
    EraPolicy,
    HostConfig,
    HttpServer,
    ServerConfig,
    StdioServer,
    fingerprint,
)

if TYPE_CHECKING:
    from pathlib import Path


TODAY = date(2026, 12, 1)
FINE = Folder("/state", writable=True, mode=0o700)


def server(launch: StdioServer | HttpServer | None, **keys: Any) -> ServerConfig:
    return ServerConfig(name="a", launch=launch, fingerprint=fingerprint(launch), **keys)


def facts(*servers: ServerConfig, **keys: Any) -> Facts:
    given = {
        "config": HostConfig(servers=servers),
        "tools": {"a": Tool("/bin/x")},
        "missing_cwd": frozenset(),
        "state": FINE,
        "descriptors": (1024, 4096),
        "today": TODAY,
        **keys,
    }
    return Facts(**given)


def verdicts(*servers: ServerConfig, check: str, **keys: Any) -> list[tuple[str, str, str]]:
    found = all_checks(facts(*servers, **keys))
    return [(one.result, one.finding, one.fix) for one in found if one.check == check]


def command(*words: str, **keys: Any) -> ServerConfig:
    return server(StdioServer(command=words, **keys))


def test_a_problem_of_the_configuration_is_a_failure() -> None:
    off = server(None, problem="servers.a is broken")
    assert verdicts(off, check="config") == [
        ("failed", "servers.a is broken", "mend what the sentence names, then run doctor again")
    ]


def test_disabled_servers_are_not_checked() -> None:
    off = server(None, problem="x", enabled=False)
    assert [one for one in all_checks(facts(off)) if one.server] == []


@pytest.mark.parametrize(
    ("program", "tool", "expected"),
    [
        ("x", Tool("/bin/x"), ("ok", "x is /bin/x", "")),
        ("npx", Tool("/n/npx", "v20.1.0"), ("ok", "npx is /n/npx (v20.1.0)", "")),
        (
            "npx",
            Tool("/n/npx", "v16.1.0"),
            ("warning", "npx is /n/npx (v16.1.0): too old", "install Node.js 18 or later"),
        ),
        (
            "/o/uvx",
            Tool(None),
            ("failed", "/o/uvx is not found", "install uv (https://docs.astral.sh/uv)"),
        ),
        (
            "thing",
            Tool(None),
            ("failed", "thing is not found", "install it, or give its full path as `command`"),
        ),
        (
            "npx -y x",
            Tool(None),
            (
                "failed",
                "npx -y x is not found",
                "`command` is one program; put what follows it into `args`",
            ),
        ),
    ],
)
def test_the_command_is_looked_for(
    program: str, tool: Tool, expected: tuple[str, str, str]
) -> None:
    assert verdicts(command(program), check="command", tools={"a": tool}) == [expected]


def test_a_missing_folder_is_named() -> None:
    one = command("x", cwd="/nowhere")
    assert verdicts(one, check="cwd", missing_cwd=frozenset({"a"})) == [
        ("failed", "the folder /nowhere is not there", "make the folder, or correct `cwd`")
    ]


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (("npx", "-y", "pkg"), "pkg"),
        (("/n/npx", "--package", "p@1", "bin"), "p@1"),
        (("npx", "--registry", "http://x", "p"), "p"),
        (("uvx", "--from", "git+https://x", "bin"), "git+https://x"),
        (("uv", "tool", "run", "p"), "p"),
        (("uv", "run", "x.py"), None),
        (("npx", "-y"), None),
        (("npx", "-p"), None),
        (("python", "-m", "x"), None),
    ],
)
def test_the_package_of_a_launcher_is_found(words: tuple[str, ...], package: str | None) -> None:
    assert package_of(words) == package


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("npx", "-y", "@s/p"), [("hint", "@s/p is not pinned", "@s/p@X.Y.Z")]),
        (("npx", "-y", "@s/p@latest"), [("hint", "@s/p@latest is not pinned", "@s/p@X.Y.Z")]),
        (("npx", "-y", "@s/p@1.2.3"), []),
        (("uvx", "p"), [("hint", "p is not pinned", "p==X.Y.Z")]),
        (("uvx", "p==1"), []),
        (("uvx", "--from", "git+https://x/y", "z"), []),
        (
            ("uvx", "docling-mcp==3.3.0"),
            [("warning", "docling-mcp speaks HTTP unless told otherwise", "--transport stdio")],
        ),
        (("uvx", "docling-mcp==3.3.0", "--transport", "stdio"), []),
        (("python", "x.py"), []),
    ],
)
def test_packages_are_to_be_pinned_and_told_to_speak_on_pipes(
    words: tuple[str, ...], said: list[tuple[str, str, str]]
) -> None:
    found = verdicts(command(*words), check="package")
    assert len(found) == len(said)
    for (result, finding, fix), (wanted, part, way) in zip(found, said, strict=True):
        assert result == wanted
        assert part in finding
        assert way in fix


def test_inherited_variables_that_are_not_set_are_named() -> None:
    one = command("x", env_inherit=("A", "B", "AWS_*"))
    (found,) = verdicts(one, check="environment", variables={"A": "1"})
    assert found[:2] == ("warning", "env_inherit names variables that are not set here: B")


@pytest.mark.parametrize(
    ("url", "result"),
    [
        ("https://x.example/mcp", "ok"),
        ("http://127.0.0.1:8/mcp", "ok"),
        ("http://x.example/mcp", "warning"),
    ],
)
def test_headers_are_not_to_be_sent_unencrypted(url: str, result: str) -> None:
    one = server(HttpServer(url=url, headers={"A": "b"}))
    assert [found[0] for found in verdicts(one, check="url")] == [result]


@pytest.mark.parametrize(
    ("found", "check", "part"),
    [
        (Url(unreachable="Connection refused"), "connect", "Connection refused"),
        (Url(ca_problem="No such file"), "ca_bundle", "No such file"),
        (Url(missing_program="token-helper"), "headers_command", "token-helper is not found"),
    ],
)
def test_what_keeps_a_url_from_being_used_is_a_failure(found: Url, check: str, part: str) -> None:
    one = server(HttpServer(url="https://x.example/mcp"))
    ((result, finding, fix),) = verdicts(one, check=check, urls={"a": found})
    assert result == "failed"
    assert part in finding
    assert fix


def test_a_url_is_connected_to_and_sent_nothing(tmp_path: Path) -> None:
    with socket.socket() as listening, socket.socket() as closed:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        closed.bind(("127.0.0.1", 0))
        urls = [f"http://127.0.0.1:{one.getsockname()[1]}/mcp" for one in (listening, closed)]
        fine = HttpServer(url=urls[0], headers_command=(sys.executable,))
        odd = HttpServer(
            url=urls[1], ca_bundle=str(tmp_path / "none.pem"), headers_command=("nowhere-at-all",)
        )
        servers = [server(fine), msgspec.structs.replace(server(odd), name="b")]
        found = look_at_urls([*servers, command("true")])
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(5)
            assert connection.recv(100) == b""
    assert found["a"] == Url()
    assert found["b"].unreachable
    assert found["b"].ca_problem
    assert found["b"].missing_program == "nowhere-at-all"


@pytest.mark.parametrize(
    ("era", "result", "part"),
    [
        ({}, "hint", "the allowance has no end"),
        ({"legacy_expires": date(2026, 11, 30)}, "failed", "ended on 2026-11-30"),
        ({"legacy_expires": TODAY}, "warning", "ends on 2026-12-01"),
        ({"legacy_expires": date(2026, 12, 15)}, "warning", "ends on 2026-12-15"),
        ({"legacy_expires": date(2026, 12, 16)}, "ok", "holds until 2026-12-16"),
    ],
)
def test_the_end_of_an_allowance_is_watched(era: dict[str, Any], result: str, part: str) -> None:
    one = command("x")
    one = msgspec.structs.replace(one, era=EraPolicy(allow_legacy=("2025-11-25",), **era))
    (found,) = verdicts(one, check="allowance")
    assert found[0] == result
    assert part in found[1]


def test_an_allowance_for_another_command_or_against_expect_era_is_named() -> None:
    era = EraPolicy(
        allow_legacy=("2025-11-25",),
        legacy_fingerprint="sha256:" + "0" * 64,
        expect_era="modern",
        legacy_expires=date(2027, 1, 1),
    )
    one = msgspec.structs.replace(command("x"), era=era)
    found = verdicts(one, check="allowance")
    assert [result for result, _, _ in found] == ["warning", "failed", "ok"]
    assert one.fingerprint in found[1][1]
    same = msgspec.structs.replace(era, legacy_fingerprint=one.fingerprint, expect_era=None)
    again = msgspec.structs.replace(one, era=same)
    assert [result for result, _, _ in verdicts(again, check="allowance")] == ["ok"]


@pytest.mark.parametrize(
    ("folder", "result"),
    [
        (FINE, "ok"),
        (Folder("/state", writable=True), "ok"),
        (Folder("/state", writable=True, mode=0o755), "warning"),
        (Folder("/state", writable=False), "failed"),
    ],
)
def test_the_state_folder_is_private_and_writable(folder: Folder, result: str) -> None:
    assert [found[0] for found in verdicts(check="state", state=folder)] == [result]


def test_a_running_host_is_named() -> None:
    (found,) = verdicts(check="instance", state=Folder("/s", writable=True, holder="42"))
    assert found[1] == "a host is running there (pid 42)"


@pytest.mark.parametrize(
    ("limits", "result"), [((1024, 4096), "ok"), ((100, 4096), "ok"), ((100, 130), "failed")]
)
def test_open_files_are_counted(limits: tuple[int, int], result: str) -> None:
    assert [f[0] for f in verdicts(command("x"), check="open files", descriptors=limits)] == [
        result
    ]


def test_a_wrong_clock_is_named() -> None:
    assert verdicts(check="clock", today=date(1970, 1, 1))[0][0] == "failed"
    assert verdicts(check="clock")[0][0] == "ok"


@pytest.mark.parametrize(
    ("endpoint", "unreachable", "expected"),
    [
        (None, None, []),
        ("http://c:4318", None, ["ok"]),
        ("http://c", "refused", ["failed"]),
        ("http://c:4317", "refused", ["failed"]),
    ],
)
def test_the_collector_is_asked_for(
    endpoint: str | None, unreachable: str | None, expected: list[str]
) -> None:
    found = verdicts(check="otlp", otlp_endpoint=endpoint, unreachable=unreachable)
    assert [result for result, _, _ in found] == expected
    if endpoint and "4317" in endpoint:
        assert found[0][2] == "use port 4318"


def test_remarks_about_the_configuration_are_warnings() -> None:
    assert all_checks(facts(warnings=("x",)))[0] == Check("warning", "config", "x")
