"""What a killed host leaves behind is ended by its guardian: real processes, really killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from observant_host.supervision import guardian as guardian_module
from observant_host.supervision import guardian_process
from observant_host.supervision.guardian import Guardian
from observant_host.supervision.guardian_process import GUARD_VARIABLE, Orders, Process
from observant_host.telemetry.setup import capturing
from observant_host.timing.clock import SystemClock
from tests.support.clock import ManualClock
from tests.support.processes import alive, eventually
from tests.support.receivers import PATIENCE_S
from tests.transports.suite import FAR, opened, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.transports.conftest import StdioSubject

HOST = Path(__file__).parents[1] / "support" / "guarded_host.py"
ROOT = Path(__file__).parents[2]
LIMIT_S = 5.0


def marked(marker: str) -> dict[int, str]:
    """Every living process with the marker among its arguments."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and alive(int(folder.name)):
            try:
                arguments = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in arguments:
                found[int(folder.name)] = arguments.replace(b"\0", b" ").decode()
    return found


class GuardedHost:
    """tests/support/guarded_host.py as a process."""

    def __init__(self, process: asyncio.subprocess.Process, marker: str) -> None:
        self.process = process
        self.marker = marker

    @classmethod
    async def started(cls) -> GuardedHost:
        marker = f"marker-{uuid.uuid4().hex}"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(HOST),
            marker,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
        assert process.stdout is not None
        async with asyncio.timeout(30):
            assert await process.stdout.readline() == b"ready\n"
        return cls(process, marker)

    def guardians(self) -> list[int]:
        return [pid for pid, line in marked(f"guardian_process.py\0{self.process.pid}").items()]

    async def nothing_left_after_kill(self, number: signal.Signals) -> None:
        (guardian,) = self.guardians()
        os.killpg(self.process.pid, number)
        await self.process.wait()
        try:
            await eventually(lambda: not marked(self.marker), within=LIMIT_S)
        except TimeoutError:
            pytest.fail(f"left after {LIMIT_S} s: {marked(self.marker)}")
        await eventually(lambda: not alive(guardian), within=LIMIT_S)


@pytest.mark.parametrize("attempt", range(3))
async def test_nothing_is_left_five_seconds_after_a_host_with_ten_children_is_killed(
    attempt: int,
) -> None:
    host = await GuardedHost.started()
    await eventually(lambda: len(marked(host.marker)) >= 14 + 5 * attempt)
    await host.nothing_left_after_kill(signal.SIGKILL)


async def test_a_host_that_is_interrupted_and_says_nothing_leaves_nothing_either() -> None:
    host = await GuardedHost.started()
    await host.nothing_left_after_kill(signal.SIGTERM)


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    telemetry, _ = capturing()
    guardian = Guardian(telemetry=telemetry, clock=SystemClock())
    await guardian.start()
    yield guardian
    await guardian.close()


async def test_a_guardian_that_is_dismissed_ends_at_once_and_harms_nobody(
    guardian: Guardian, subject: StdioSubject
) -> None:
    transport = subject.make(guardian=guardian)
    recorder = await opened(transport)
    pid = guardian.pid
    assert pid is not None
    await guardian.close()
    await guardian.close()
    assert guardian.pid is None
    assert not alive(pid)
    transport.send(request(1, "echo"), expires=FAR)
    await recorder.answer_to(1)


async def test_a_guardian_lives_in_a_session_of_its_own(guardian: Guardian) -> None:
    assert guardian.pid is not None
    assert os.getsid(guardian.pid) == guardian.pid != os.getsid(0)


async def test_a_guardian_that_dies_is_replaced_and_told_again(guardian: Guardian) -> None:
    first = guardian.pid
    assert first is not None
    guardian.watch(424242)
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: guardian.pid not in (None, first))
    assert not alive(first)


async def test_children_can_be_recognised_also_below_another_host(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = guardian.environment[GUARD_VARIABLE]
    monkeypatch.setenv(GUARD_VARIABLE, "outer")
    assert guardian.environment == {GUARD_VARIABLE: f"outer:{own}"}


def test_orders_come_in_pieces_and_what_is_not_understood_is_ignored() -> None:
    orders = Orders()
    orders.take(b"token abc\nwatch 12")
    assert orders.watched == {}
    orders.take(b"3456789\nwatch x\nnonsense\n\xff\nwatch 987654321\n")
    assert orders.watched == {123456789: None, 987654321: None}
    orders.take(b"forget 123456789\nforget 1\nbye\n")
    assert (orders.token, list(orders.watched), orders.dismissed) == ("abc", [987654321], True)


def test_the_doomed_are_groups_sessions_the_marked_and_all_their_descendants() -> None:
    def process(pid: int, parent: int, group: int, session: int) -> Process:
        return Process(pid, parent, group, session, start=pid)

    processes = [
        process(1, 0, 1, 1),
        process(10, 1, 10, 10),
        process(11, 10, 10, 10),
        process(12, 11, 12, 10),  # a job of a shell: own group, our session
        process(13, 12, 13, 13),  # left both, but its parent lives
        process(20, 1, 20, 20),  # marked
        process(21, 20, 21, 21),
        process(30, 1, 30, 30),
    ]
    left = guardian_process.doomed(processes, groups={10}, marked={20})
    assert [one.pid for one in left] == [10, 11, 12, 13, 20, 21]


def test_a_group_whose_number_was_given_to_another_process_is_spared() -> None:
    now = [Process(5, 1, 5, 5, start=900), Process(7, 1, 6, 6, start=50)]
    watched: dict[int, int | None] = {5: 100, 6: 40}
    assert guardian_process.still_ours(watched, now) == {6}
    assert guardian_process.still_ours({5: 900}, now) == {5}
    assert guardian_process.still_ours({5: None}, now) == set()


async def test_a_token_is_found_whole_in_the_environment_of_a_process() -> None:
    child = os.posix_spawn(
        "/bin/sleep", ["sleep", "30"], {"A": "inner", GUARD_VARIABLE: "outer:inner"}
    )
    try:
        # the kernel shows the environment an instant after the parent goes on
        await eventually(lambda: guardian_process.carries(child, "inner"))
        assert guardian_process.carries(child, "outer")
        assert not guardian_process.carries(child, "inn")
        assert not guardian_process.carries(1 << 30, "inner")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert guardian_process.start_of(child) is None


def test_a_signal_meant_for_a_process_that_is_gone_hits_nobody() -> None:
    child = os.posix_spawn("/bin/sleep", ["sleep", "30"], {})
    try:
        found = guardian_process.read_process(child)
        assert found is not None
        another = Process(child, found.parent, found.group, found.session, found.start + 1)
        guardian_process.send_signal(another, signal.SIGKILL)
        assert alive(child)
        guardian_process.send_signal(found, signal.SIGKILL)
    finally:
        os.waitpid(child, 0)
    guardian_process.send_signal(found, signal.SIGKILL)


# the program itself, in this process


class Heedless:
    """`sleep` in a session of its own, deaf to SIGTERM, reaped by the test."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        argv = ["sh", "-c", "trap '' TERM; sleep 60"]
        self.pid = os.posix_spawn("/bin/sh", argv, environment or {}, setsid=True)
        until = time.monotonic() + PATIENCE_S
        while not self._ignores_term():
            assert time.monotonic() < until
            time.sleep(0.005)

    def _ignores_term(self) -> bool:
        status = Path(f"/proc/{self.pid}/status").read_text()
        ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
        return bool(ignored & 1 << (signal.SIGTERM - 1))

    def reap(self) -> int:
        os.killpg(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("TERM_S", 0.05), ("SETTLED_S", 0.1), ("GIVE_UP_S", 5.0)):
        monkeypatch.setattr(guardian_process, name, seconds)


def dismissed(data: bytes, monkeypatch: pytest.MonkeyPatch) -> Orders:
    """What `listen` made of `data` on stdin, and of the end of stdin after it."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    monkeypatch.setattr(guardian_process, "STDIN", reading)
    orders = Orders()
    guardian_process.listen(os.getpid(), orders)
    os.close(reading)
    return orders


def test_listening_ends_with_bye_or_with_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dismissed(b"token x\nbye\n", monkeypatch).dismissed
    assert not dismissed(b"token x\nwatch 1", monkeypatch).dismissed


def test_listening_ends_with_the_host_though_a_fork_of_it_holds_the_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"token y\n")
    monkeypatch.setattr(guardian_process, "STDIN", reading)
    host = os.posix_spawn("/bin/sleep", ["sleep", "0.1"], {})
    orders = Orders()
    guardian_process.listen(host, orders)
    os.waitpid(host, 0)
    assert (orders.token, orders.dismissed) == ("y", False)
    os.close(reading)
    os.close(writing)


@pytest.mark.usefixtures("hurried")
def test_the_watched_and_the_marked_are_ended_and_others_are_not() -> None:
    watched, marked_one, other = (
        Heedless(),
        Heedless({GUARD_VARIABLE: "a:mine"}),
        Heedless({GUARD_VARIABLE: "a:yours"}),
    )
    orders = Orders()
    orders.take(f"token mine\nwatch {watched.pid}\n".encode())
    guardian_process.end_everything(orders)
    assert not alive(watched.pid)
    assert not alive(marked_one.pid)
    assert alive(other.pid)
    assert [one.reap() for one in (watched, marked_one, other)] == [-signal.SIGKILL] * 3


@pytest.mark.usefixtures("hurried")
def test_without_pidfds_the_groups_are_ended_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    watched = Heedless()
    orders = Orders()
    orders.take(f"watch {watched.pid}\nwatch 1073741824\n".encode())
    guardian_process.end_everything(orders)
    assert watched.reap() == -signal.SIGKILL


async def test_a_guardian_that_cannot_be_started_again_is_tried_until_the_host_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    telemetry, told = capturing()
    clock = ManualClock()
    guardian = Guardian(telemetry=telemetry, clock=clock)
    await guardian.start()
    program = guardian_module.PROGRAM
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert guardian.pid is not None
    os.kill(guardian.pid, signal.SIGKILL)
    await eventually(lambda: guardian.pid is None)
    await clock.advance(1.5)
    await eventually(lambda: len(told) >= 2)
    assert "/no/such/python" in str(told[1].fact)
    assert program.endswith("guardian_process.py")
    guardian.watch(1 << 30)
    await guardian.close()


async def test_a_guardian_that_hangs_is_replaced_before_much_waits_for_it(
    guardian: Guardian,
) -> None:
    first = guardian.pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    for number in range(1 << 20, (1 << 20) + 12_000):
        guardian.watch(number)
        guardian.forget(number)
    await eventually(lambda: guardian.pid not in (None, first))


async def test_a_guardian_that_does_not_take_leave_is_killed(guardian: Guardian) -> None:
    pid = guardian.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    guardian._clock = hurry = ManualClock()
    closing = asyncio.create_task(guardian.close())
    await eventually(lambda: hurry.waiting)
    await hurry.advance(3)
    await closing
    await eventually(lambda: not alive(pid))
