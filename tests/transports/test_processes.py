"""Starting children and ending them, with everything that they started."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from observant_host.errors import SpawnFailed, TransportClosed
from observant_host.telemetry.vocabulary import DeadlineExpired
from observant_host.timing.tasks import Signal
from observant_host.transports import child
from observant_host.transports.child import StartGate
from tests.support.processes import alive, eventually, group_members, living, open_fds, state_of
from tests.support.receivers import PATIENCE_S, Recorder
from tests.transports.suite import FAR, opened, request

if TYPE_CHECKING:
    from tests.support.receivers import Recorder as Recording
    from tests.transports.conftest import StdioSubject


async def ask(recorder: Recording, transport: object, method: str, **params: object) -> object:
    send = transport.send  # type: ignore[attr-defined] # any transport of the suite
    send(request(77, method, **params), expires=FAR)
    return (await recorder.answer_to(77))["result"]


# starting


async def test_a_child_leads_a_session_and_a_group_of_its_own(subject: StdioSubject) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    pid = transport.pid
    assert await ask(recorder, transport, "pids") == {"pid": pid, "pgid": pid, "sid": pid}


async def test_a_child_gets_the_base_environment_its_own_and_nothing_else(
    subject: StdioSubject, tmp_path: Path
) -> None:
    host = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/me",
        "OPENAI_API_KEY": "secret",
        "AWS_REGION": "x",
        "LC_CTYPE": "C.UTF-8",
    }
    transport = subject.make(
        host_environment=host,
        env={"API_KEY": "1", "HOME": "/elsewhere"},
        env_inherit=("AWS_*",),
        cwd=str(tmp_path),
    )
    recorder = await opened(transport)
    seen = await ask(recorder, transport, "env")
    assert seen == {
        "environment": {
            "PATH": os.environ["PATH"],
            "HOME": "/elsewhere",
            "AWS_REGION": "x",
            "LC_CTYPE": "C.UTF-8",
            "API_KEY": "1",
        },
        "cwd": str(tmp_path),
    }


async def test_a_child_inherits_no_descriptor_of_the_host(subject: StdioSubject) -> None:
    transports = [subject.make() for _ in range(3)]
    for transport in transports:
        await ask(await opened(transport), transport, "echo")
        fds = {path.name for path in Path(f"/proc/{transport.pid}/fd").iterdir()}
        assert fds == {"0", "1", "2"}


@pytest.mark.parametrize(
    ("command", "cwd", "words"),
    [
        (("no-such-program-anywhere", "--key", "s3cr3t"), None, "looked in /opt/one, /opt/two"),
        (("no-such-program-anywhere",), None, "No such file or directory"),
        (("/no/such/program",), None, "there is no such file"),
        (("npx -y @scope/server",), None, 'put what follows it into "args"'),
        (("npx -y server",), None, 'put what follows it into "args"'),
        (("{tmp}/plain.txt",), None, "Permission denied; make it executable"),
        (("{tmp}/no_shebang",), None, "Exec format error; it lacks a #! line"),
        (("{tmp}/bad_shebang",), None, "the interpreter in its first line is not"),
        (("/bin/sh",), "/no/such/folder", 'its working directory "/no/such/folder" is not there'),
        ((), None, "empty command"),
        (("/bin/sh", "a\0b"), None, "embedded null byte"),
        (("/bin/sh", "x" * (1 << 22)), None, "Argument list too long"),
    ],
)
async def test_what_cannot_be_started_says_why_and_leaves_nothing(
    subject: StdioSubject, tmp_path: Path, command: tuple[str, ...], cwd: str | None, words: str
) -> None:
    (tmp_path / "plain.txt").write_text("x")
    for name, text in (("no_shebang", "\x01\x02"), ("bad_shebang", "#!/no/such/python\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    await asyncio.to_thread(lambda: None)  # the executor's own descriptors are not counted
    before = open_fds()
    argv = tuple(part.replace("{tmp}", str(tmp_path)) for part in command)
    transport = subject.run(argv, cwd=cwd, host_environment={"PATH": "/opt/one:/opt/two"})
    with pytest.raises(SpawnFailed) as failed:
        await transport.open(Recorder())
    assert words in str(failed.value)
    assert 'server "sample"' in str(failed.value)
    assert "s3cr3t" not in str(failed.value)
    assert open_fds() == before
    assert (await transport.close()).kind == "closed"


async def test_a_start_that_is_cancelled_leaves_no_process(
    subject: StdioSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    launch = child._launch

    def slow_launch(*arguments: object) -> object:
        started = launch(*arguments)  # type: ignore[arg-type] # passed on as it came
        made.append(started[0].pid)
        time.sleep(0.2)
        return started

    monkeypatch.setattr(child, "_launch", slow_launch)
    transport = subject.make()
    opening = asyncio.create_task(transport.open(Recorder()))
    await eventually(lambda: made)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await eventually(lambda: not state_of(made[0]))
    assert (await transport.close()).kind == "closed"


async def test_closing_during_the_start_ends_what_is_being_started(subject: StdioSubject) -> None:
    transport, recorder = subject.make(), Recorder()
    opening = asyncio.create_task(transport.open(recorder))
    await asyncio.sleep(0)
    end = await transport.close()
    await opening
    assert end.kind == "closed"
    assert recorder.ends == [end]
    with pytest.raises(TransportClosed):
        transport.send(request(1, "echo"), expires=FAR)


async def test_no_more_than_the_gate_allows_start_at_once(
    subject: StdioSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, peak = 0, 0
    launch = child._launch

    def counted(*arguments: object) -> object:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        try:
            time.sleep(0.01)
            return launch(*arguments)  # type: ignore[arg-type] # passed on as it came
        finally:
            running -= 1

    monkeypatch.setattr(child, "_launch", counted)
    subject.starts = StartGate(2)
    await asyncio.gather(*(opened(subject.make()) for _ in range(8)))
    assert peak == 2
    await asyncio.gather(*(transport.close() for transport in subject.made))


async def test_a_raised_limit_of_open_files_is_given_back_to_children(
    subject: StdioSubject,
) -> None:
    subject.starts = StartGate(child_nofile=256)
    transport = subject.make()
    await opened(transport)
    assert transport.pid is not None
    soft, hard = resource.prlimit(transport.pid, resource.RLIMIT_NOFILE)
    assert (soft, hard) == (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


# ending


async def test_a_child_that_heeds_its_stdin_is_sent_no_signal(subject: StdioSubject) -> None:
    transport = subject.make("--announce-term", shutdown_timeout_s=20)
    recorder = await opened(transport)
    await ask(recorder, transport, "echo")
    end = await transport.close()
    assert end.exit_code == 0
    assert len(recorder.messages) == 1
    assert [told for told in subject.told if isinstance(told.fact, DeadlineExpired)] == []


async def test_a_child_that_ignores_its_stdin_gets_a_sigterm(subject: StdioSubject) -> None:
    transport = subject.make("--ignore-eof", "--announce-term")
    recorder = await opened(transport)
    await ask(recorder, transport, "echo")
    end = await transport.close()
    assert end.exit_code == 0
    assert recorder.messages[-1] == {"jsonrpc": "2.0", "id": "term", "result": "SIGTERM"}
    (expired,) = [told.fact for told in subject.told if isinstance(told.fact, DeadlineExpired)]
    assert (expired.scope, expired.peer) == ("shutdown", "sample")


async def test_a_child_that_ignores_everything_is_killed_within_the_bound(
    subject: StdioSubject,
) -> None:
    transport = subject.make("--ignore-eof", "--ignore-term", shutdown_timeout_s=1)
    recorder = await opened(transport)
    await ask(recorder, transport, "echo")
    pid = transport.pid
    assert pid is not None
    end = await transport.close()
    waited_out = [one.fact for one in subject.told if isinstance(one.fact, DeadlineExpired)]
    assert sum(one.budget_ms for one in waited_out) < 1000
    assert end.exit_code == -signal.SIGKILL
    assert state_of(pid) == ""


@pytest.mark.parametrize("wait_s", [0.0, 0.2])
async def test_whoever_has_waited_enough_ends_a_stubborn_child_and_its_group_at_once(
    subject: StdioSubject, wait_s: float
) -> None:
    hurry = Signal()
    transport = subject.make("--ignore-eof", "--ignore-term", shutdown_timeout_s=600, hurry=hurry)
    recorder = await opened(transport)
    grandchild = await ask(recorder, transport, "child", mode="holds_stdout")
    assert isinstance(grandchild, int)
    asyncio.get_running_loop().call_later(wait_s, hurry.set)
    async with asyncio.timeout(PATIENCE_S):
        end = await transport.close()
    assert end.kind == "closed"
    await eventually(lambda: not alive(grandchild))


async def test_many_stubborn_children_are_ended_in_the_time_of_one(subject: StdioSubject) -> None:
    transports = [
        subject.make("--ignore-eof", "--ignore-term", shutdown_timeout_s=4) for _ in range(8)
    ]
    for transport in transports:
        await ask(await opened(transport), transport, "echo")
    async with asyncio.timeout(PATIENCE_S):  # one after another, they would take 8 times 3.2 s
        await asyncio.gather(*(transport.close() for transport in transports))


@pytest.mark.parametrize("options", [(), ("--ignore-eof",), ("--ignore-eof", "--ignore-term")])
async def test_a_launcher_and_the_server_below_it_both_end(
    subject: StdioSubject, options: tuple[str, ...]
) -> None:
    transport = subject.make("--launcher", *options)
    recorder = await opened(transport)
    pids = await ask(recorder, transport, "pids")
    assert isinstance(pids, dict)
    assert pids["pgid"] == transport.pid != pids["pid"]
    await transport.close()
    await eventually(lambda: not alive(pids["pid"]))


@pytest.mark.parametrize("mode", ["plain", "holds_stdout"])
async def test_grandchildren_that_heed_nothing_end_with_the_life_that_is_closed(
    subject: StdioSubject, mode: str
) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    grandchild = await ask(recorder, transport, "child", mode=mode)
    assert isinstance(grandchild, int)
    await transport.close()
    await eventually(lambda: not alive(grandchild))


@pytest.mark.parametrize("mode", ["plain", "holds_stdout"])
async def test_grandchildren_of_a_child_that_ended_by_itself_are_ended_too_and_delay_nothing(
    subject: StdioSubject, mode: str
) -> None:
    transport = subject.make(shutdown_timeout_s=600)
    recorder = await opened(transport)
    grandchild = await ask(recorder, transport, "child", mode=mode)
    assert isinstance(grandchild, int)
    transport.send(request(1, "exit", status=5), expires=FAR)
    end = await recorder.end()
    assert (end.kind, end.exit_code) == ("exit", 5)
    assert await transport.close() == end
    await eventually(lambda: not alive(grandchild))


async def test_an_ended_child_is_reaped_without_anybody_closing_it(subject: StdioSubject) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    pid = transport.pid
    assert pid is not None
    transport.send(request(1, "exit"), expires=FAR)
    await recorder.end()
    await eventually(lambda: state_of(pid) == "")


async def test_closing_that_is_cancelled_goes_on(subject: StdioSubject) -> None:
    transport = subject.make("--ignore-eof")
    recorder = await opened(transport)
    await ask(recorder, transport, "echo")
    closing = asyncio.create_task(transport.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert (await recorder.end()).kind == "closed"


async def test_a_loop_that_is_torn_down_kills_what_still_runs(subject: StdioSubject) -> None:
    transport = subject.make("--ignore-eof", "--ignore-term")
    recorder = await opened(transport)
    grandchild = await ask(recorder, transport, "child", mode="plain")
    assert isinstance(grandchild, int)
    pid = transport.pid
    assert pid is not None
    assert transport._owner is not None
    transport._owner.cancel()
    await recorder.end()
    await eventually(lambda: state_of(pid) == "")
    await eventually(lambda: not living([grandchild]))


async def test_an_exit_is_noticed_without_pidfds_too(
    subject: StdioSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    transport = subject.make()
    recorder = await opened(transport)
    pid = transport.pid
    transport.send(request(1, "exit", status=6), expires=FAR)
    end = await recorder.end()
    assert (end.kind, end.exit_code) == ("exit", 6)
    await transport.close()
    assert pid is not None
    assert group_members(pid) == []


async def test_a_child_that_somebody_else_reaped_has_an_unknown_status(
    subject: StdioSubject,
) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    pid = transport.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    end = await recorder.end()
    assert (end.kind, end.exit_code) == ("exit", None)
    assert "its exit status is unknown" in end.detail


async def test_fifty_children_run_at_once_without_a_thread_for_each(
    subject: StdioSubject,
) -> None:
    transports = [subject.make() for _ in range(50)]
    recorders = await asyncio.gather(*(opened(transport) for transport in transports))
    for recorder, transport in zip(recorders, transports, strict=True):
        await ask(recorder, transport, "echo")
    pids = [transport.pid for transport in transports]
    assert threading.active_count() < 20
    await asyncio.gather(*(transport.close() for transport in transports))
    assert living(pid for pid in pids if pid) == []
