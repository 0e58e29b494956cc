"""Credentials: static, read again, and issued by a real child process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx

from observant_host.auth.credentials import AGAIN_S, UNSAID_S, for_server
from observant_host.auth.header_files import FRESH_S
from observant_host.config import HttpServer
from observant_host.errors import TransportError
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.setup import capturing
from tests.support.peers import program
from tests.support.processes import eventually, open_fds
from tests.transports.suite import SkippingClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from observant_host.transports.base import Credentials


class Desk:
    """Makes credentials; `runs` counts how often the command has run."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "runs"
        self.clock = SkippingClock()
        self.masker = Masker()
        self.telemetry, self.told = capturing()

    def make(self, *command: str, **endpoint: Any) -> Credentials:
        argv = program("issuer.py", "--state", str(self.state), *command) if command else ()
        server = HttpServer("http://127.0.0.1/mcp", headers_command=argv, **endpoint)
        return for_server(
            "sample", server, masker=self.masker, telemetry=self.telemetry, clock=self.clock
        )

    @property
    def runs(self) -> int:
        return self.state.stat().st_size if self.state.exists() else 0


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    before = open_fds()
    desk = Desk(tmp_path)
    with blockbuster_ctx("observant_host"):
        yield desk
    await eventually(lambda: open_fds() <= before)


def printed(expires_in_s: float | None = None, **headers: str) -> str:
    given: dict[str, Any] = {"headers": headers}
    if expires_in_s is not None:
        given["expires_in_s"] = expires_in_s
    return json.dumps(given)


async def problem_with(credentials: Credentials) -> str:
    with pytest.raises(TransportError) as refused:
        await credentials.headers()
    return str(refused.value)


async def test_static_headers_are_given_as_they_are(desk: Desk) -> None:
    credentials = desk.make(headers={"Authorization": "Bearer x", "X-Org": "1"})
    assert await credentials.headers() == {"Authorization": "Bearer x", "X-Org": "1"}
    assert await credentials.rejected(await credentials.headers()) is False
    assert await desk.make().headers() == {}


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Mcp-Session-Id": "x"}, "sets Mcp-Session-Id, which belongs to the protocol"),
        ({"content-length": "5"}, "sets content-length"),
        ({"Mcp-Param-X": "x"}, "sets Mcp-Param-X"),
        ({"X Y": "x"}, "a header name that is none"),
        ({"X": "secret\r\nEvil: 1"}, "gives X a value with a line break"),
        ({"X": "a" * 9000}, "more than 8192 characters"),
        ({f"X{n}": "x" for n in range(65)}, "more than 64 headers"),
    ],
)
async def test_headers_that_cannot_be_sent_are_refused_without_showing_values(
    desk: Desk, headers: dict[str, str], said: str
) -> None:
    problem = await problem_with(desk.make(headers=headers))
    assert problem.startswith("servers.sample.headers ")
    assert said in problem
    assert "secret" not in problem


async def test_a_file_is_read_again_when_its_secret_rotates(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first-token\n")
    credentials = desk.make(
        headers={"Authorization": "Bearer stale", "X-A": "a"},
        header_files={"Authorization": ("Bearer ", str(file), "")},
    )
    assert await credentials.headers() == {"Authorization": "Bearer first-token", "X-A": "a"}
    file.write_text("second-token")
    desk.clock.skipped += FRESH_S + 1
    assert (await credentials.headers())["Authorization"] == "Bearer second-token"
    assert desk.masker.text("first-token second-token") == "*** ***"


async def test_a_refusal_reads_the_file_at_once(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first-token")
    credentials = desk.make(header_files={"Authorization": ("Bearer ", str(file), "")})
    used = await credentials.headers()
    assert await credentials.rejected(used) is False
    file.write_text("second-token")
    assert await credentials.rejected(used) is True
    assert (await credentials.headers())["Authorization"] == "Bearer second-token"


async def test_what_need_not_be_waited_for_is_there_at_once(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    credentials = desk.make(
        "--print",
        printed(60, X_B="b"),
        headers={"X-A": "a"},
        header_files={"Authorization": ("Bearer ", str(file), "")},
    )

    def present() -> Any:
        return credentials.present(desk.clock.monotonic())

    assert present() is None
    given = await credentials.headers()
    assert present() == given
    file.write_text("second")
    desk.clock.skipped += FRESH_S + 1
    assert present() is None  # the file is to be read again
    await credentials.headers()
    assert present() == {**given, "Authorization": "Bearer second"}
    await credentials.rejected(given)
    file.write_text("third\x01")
    desk.clock.skipped += FRESH_S + 1
    with pytest.raises(TransportError):
        await credentials.headers()
    assert present() is None
    file.write_text("third")
    desk.clock.skipped += 60
    assert present() is None  # the command is to be run again
    await credentials.headers()
    assert present() == {**given, "Authorization": "Bearer third"}


async def test_after_a_refusal_only_what_was_printed_since_is_there(desk: Desk) -> None:
    credentials = desk.make("--print", "X-Key: key-{n}")
    given = await credentials.headers()
    assert await credentials.rejected(given)
    assert credentials.present(desk.clock.monotonic()) == {"X-Key": "key-2"}


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"x" * 70_000])
async def test_a_file_that_cannot_be_read_is_named(
    desk: Desk, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    problem = await problem_with(desk.make(header_files={"X-Key": ("", str(file), "")}))
    assert f"servers.sample.headers.X-Key: the file {file} cannot be used" in problem


@pytest.mark.parametrize(
    "output",
    [
        '{"headers": {"Authorization": "Bearer tok-{n}", "X-A": "1"}}',
        "Authorization: Bearer tok-{n}\nX-A:1\n",
        "\r\nAuthorization : Bearer tok-{n} \r\n\r\nX-A: 1",
    ],
)
async def test_a_command_prints_json_or_lines(desk: Desk, output: str) -> None:
    credentials = desk.make("--print", output)
    assert await credentials.headers() == {"Authorization": "Bearer tok-1", "X-A": "1"}


async def test_a_daemon_that_a_command_leaves_behind_holds_nothing_up(desk: Desk) -> None:
    credentials = desk.make("--daemon", "yes", "--print", "X-Key: key-{n}")
    async with asyncio.timeout(30):
        assert await credentials.headers() == {"X-Key": "key-1"}


async def test_a_command_has_the_hosts_environment_and_nothing_on_stdin(desk: Desk) -> None:
    credentials = desk.make("--stdin", "yes")
    assert await credentials.headers() == {"X-Stdin": "0 bytes", "X-Home": str(Path.home())}


async def test_an_answer_is_kept_until_shortly_before_it_expires(desk: Desk) -> None:
    credentials = desk.make("--print", printed(100, Authorization="Bearer token-{n}"))
    for _ in range(3):
        assert await credentials.headers() == {"Authorization": "Bearer token-1"}
    desk.clock.skipped += 91
    assert await credentials.headers() == {"Authorization": "Bearer token-2"}
    assert desk.runs == 2
    assert desk.masker.text("token-1, token-2") == "***, ***"


async def test_an_answer_without_an_expiry_is_kept_for_a_while(desk: Desk) -> None:
    credentials = desk.make("--print", "X-Key: key-{n}")
    await credentials.headers()
    desk.clock.skipped += UNSAID_S - 40
    assert await credentials.headers() == {"X-Key": "key-1"}
    desk.clock.skipped += 40
    assert await credentials.headers() == {"X-Key": "key-2"}


async def test_everybody_who_asks_at_once_shares_one_run(desk: Desk) -> None:
    credentials = desk.make("--sleep", "0.1", "--print", "X-Key: key-{n}")
    asking = [asyncio.ensure_future(credentials.headers()) for _ in range(20)]
    await asyncio.sleep(0)
    asking[0].cancel()
    given = await asyncio.gather(*asking[1:])
    assert [dict(headers) for headers in given] == [{"X-Key": "key-1"}] * 19
    assert desk.runs == 1


async def test_a_refusal_runs_the_command_once_for_all_who_were_refused(desk: Desk) -> None:
    credentials = desk.make("--print", printed(3600, Authorization="Bearer token-{n}"))
    used = await credentials.headers()
    desk.clock.skipped += AGAIN_S
    assert await asyncio.gather(*(credentials.rejected(used) for _ in range(10))) == [True] * 10
    assert await credentials.rejected(used) is True  # a late one: there are others already
    assert await credentials.headers() == {"Authorization": "Bearer token-2"}
    assert desk.runs == 2


async def test_even_new_headers_are_renewed_once_where_they_are_refused(desk: Desk) -> None:
    credentials = desk.make("--print", printed(3600, Authorization="Bearer token-{n}"))
    used = await credentials.headers()
    assert await asyncio.gather(*(credentials.rejected(used) for _ in range(10))) == [True] * 10
    again = await credentials.headers()
    assert again == {"Authorization": "Bearer token-2"}
    assert [await credentials.rejected(again) for _ in range(5)] == [False] * 5
    assert desk.runs == 2


async def test_a_server_that_refuses_everything_makes_no_storm_of_processes(desk: Desk) -> None:
    credentials = desk.make("--print", "X-Key: always the same")
    used = await credentials.headers()
    desk.clock.skipped += AGAIN_S
    assert [await credentials.rejected(used) for _ in range(5)] == [False] * 5
    assert desk.runs == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--status", "3", "--stderr", "please log in first"), "ended with 3: please log in first"),
        (("--status", "1", "--print", "X-Key: hidden-key"), "ended with 1"),
        (("--print", ""), "printed no header"),
        (("--print", "no header here"), 'printed a line 1 that is not "Name: value"'),
        (("--print", "X: 1\n<html>\n"), "printed a line 2"),
        (("--print", '{"token": "hidden-key"}'), "printed JSON that is not"),
        (("--print", '{"headers": {"X": 1}}'), "printed JSON that is not"),
        (("--print", '{"headers": {"X": "1"}, "expires_in_s": -1}'), "an expires_in_s that is no"),
        (("--print", '{"headers": {"Content-Length": "1"}}'), "sets Content-Length"),
        (("--flood", "300000"), "printed more than 262144 bytes"),
    ],
)
async def test_a_command_that_fails_says_how_and_shows_no_output(
    desk: Desk, options: tuple[str, ...], said: str
) -> None:
    credentials = desk.make(*options)
    problem = await problem_with(credentials)
    assert problem.startswith("servers.sample.headers_command ")
    assert said in problem
    assert "hidden-key" not in problem
    await problem_with(credentials)
    assert desk.runs == 1  # not again at once
    desk.clock.skipped += AGAIN_S
    await problem_with(credentials)
    assert desk.runs == 2


async def test_a_command_that_cannot_be_started_is_named(desk: Desk) -> None:
    server = HttpServer("http://x/", headers_command=("/no/such/helper",))
    credentials = for_server(
        "sample", server, masker=desk.masker, telemetry=desk.telemetry, clock=desk.clock
    )
    problem = await problem_with(credentials)
    assert "servers.sample.headers_command cannot be started" in problem
    assert "/no/such/helper" in problem


async def test_a_command_that_hangs_is_ended_at_its_deadline(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from observant_host.auth import credential_command

    defaults = dict(credential_command.CredentialCommand.__init__.__kwdefaults__)
    monkeypatch.setitem(defaults, "timeout_s", 0.3)
    monkeypatch.setattr(credential_command.CredentialCommand.__init__, "__kwdefaults__", defaults)
    problem = await problem_with(desk.make("--sleep", "60"))
    assert "gave nothing within 0.3 s" in problem
    (expired,) = [f for f in desk.told if type(f.fact).__name__ == "DeadlineExpired"]
    assert expired.fact.method == "headers_command"
