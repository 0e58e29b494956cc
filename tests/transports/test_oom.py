"""A child that the kernel killed for want of memory is told apart from one that somebody killed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from observant_host.transports.oom import OomKills, count, was_killed
from tests.transports.suite import FAR, opened, request

if TYPE_CHECKING:
    from pathlib import Path

    from tests.transports.conftest import StdioSubject

V1 = "9:name=systemd:/\n4:cpu,memory:/docker/abc\n0::/\n"
V2 = "0::/user.slice/host.service\n"


class Kernel:
    """The files of one control group, under `folder`."""

    def __init__(self, folder: Path, groups: str, *, file: str) -> None:
        self.proc, self.cgroups = folder / "proc", folder / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "self" / "cgroup").write_text(groups)
        self.file = self.cgroups / file
        self.file.parent.mkdir(parents=True)
        self.set(0)

    def set(self, kills: int) -> None:
        self.file.write_text(f"low 0\noom 9\noom_kill {kills}\nnot a number\n")

    def count(self) -> int | None:
        return count(proc=self.proc, cgroups=self.cgroups)

    def watched(self) -> OomKills:
        found = OomKills(proc=self.proc, cgroups=self.cgroups)
        found.begin()
        return found


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path, V2, file="memory.events")


@pytest.fixture
def kills(kernel: Kernel) -> OomKills:
    return kernel.watched()


@pytest.mark.parametrize(
    ("groups", "file"),
    [
        (V2, "user.slice/host.service/memory.events"),
        (V2, "memory.events"),
        (V1, "memory/docker/abc/memory.oom_control"),
        (V1, "memory/memory.oom_control"),
    ],
)
def test_the_count_is_found_in_both_versions_and_from_inside_a_container(
    tmp_path: Path, groups: str, file: str
) -> None:
    kernel = Kernel(tmp_path, groups, file=file)
    kernel.set(7)
    assert kernel.count() == 7


@pytest.mark.parametrize("groups", ["", "garbage\n", "3:cpu:/x\n", V2])
def test_where_it_cannot_be_read_it_is_unknown(tmp_path: Path, groups: str) -> None:
    kernel = Kernel(tmp_path, groups, file="elsewhere/memory.events")
    assert kernel.count() is None
    assert count(proc=tmp_path / "none") is None


def test_a_file_without_the_count_says_nothing(kernel: Kernel) -> None:
    kernel.file.write_text("low 0\noom_kill many\n")
    assert kernel.count() is None


def test_each_kill_of_the_kernel_explains_one_end(kernel: Kernel) -> None:
    kernel.set(5)
    kills = kernel.watched()
    assert "nobody here sent" in kills.explain()
    kernel.set(7)
    kills.begin()
    for expected in ("want of memory", "want of memory", "nobody here sent"):
        assert expected in kills.explain()


def test_only_sigkill_makes_one_ask_and_a_launcher_reports_it_in_its_own_way() -> None:
    killed = [code for code in (None, 0, 1, -15, -9, 9, 137, 143) if was_killed(code)]
    assert killed == [-9, 137]


async def test_a_killed_child_says_that_nobody_here_did_it(subject: StdioSubject) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    transport.send(request(1, "kill"), expires=FAR)
    end = await recorder.end()
    assert "was ended by signal 9 (SIGKILL), which nobody here sent" in end.detail
    assert "restart_above_mb" in end.detail


async def test_a_child_killed_by_the_kernel_says_so(
    subject: StdioSubject, kernel: Kernel, kills: OomKills
) -> None:
    subject.starts.oom_kills = kills
    transport = subject.make()
    recorder = await opened(transport)
    await asyncio.to_thread(kernel.set, 1)
    transport.send(request(1, "kill"), expires=FAR)
    end = await recorder.end()
    assert "the kernel killed it for want of memory (oom_kill of its control group is 1)" in (
        end.detail
    )
