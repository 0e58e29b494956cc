"""Figures of process groups come from /proc, summed, without what has just gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from observant_host.supervision.figures import Figures, process_state, read_figures

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def test_a_group_is_the_sum_of_its_processes() -> None:
    program = (
        "import os, sys; pid = os.fork(); print('x', flush=True) if pid else None;sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = read_figures([child.pid, 2**22])
        child.communicate()
    assert set(found) == {child.pid}
    group = found[child.pid]
    assert group.processes == 2
    assert group.resident_bytes > 1 << 20
    assert group.open_fds >= 6
    assert group.cpu_seconds >= 0


def test_nothing_is_read_where_nothing_is_asked_or_there_is_no_proc(tmp_path: Path) -> None:
    assert read_figures([]) == {}
    assert read_figures([os.getpid()], proc=tmp_path / "none") == {}


def test_broken_and_gone_processes_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "17").mkdir()
    (tmp_path / "18" / "fd").mkdir(parents=True)
    (tmp_path / "18" / "stat").write_text("18 (a (b) c) Z 1 7 7 0")
    (tmp_path / "19" / "fd").mkdir(parents=True)
    fields = ["S", "1", "7", *["0"] * 8, "50", "50", *["0"] * 8, "3"]
    (tmp_path / "19" / "stat").write_text(f"19 (x) {' '.join(fields)}")
    (tmp_path / "self").mkdir()
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    assert read_figures([7], proc=tmp_path) == {
        7: Figures(processes=1, resident_bytes=3 * page, cpu_seconds=100 / ticks, open_fds=0)
    }


def stat(folder: Path, pid: int, *, started: int, state: str = "S") -> None:
    fields = [state, "1", "7", *["0"] * 8, "10", "20", "30", "40", *["0"] * 4, started, "0", "3"]
    (folder / str(pid) / "fd").mkdir(parents=True, exist_ok=True)
    (folder / str(pid) / "stat").write_text(f"{pid} (x) {' '.join(map(str, fields))}")


def test_cpu_of_ended_children_stays_counted(tmp_path: Path) -> None:
    stat(tmp_path, 7, started=5)
    ticks = os.sysconf("SC_CLK_TCK")
    assert read_figures([7], proc=tmp_path)[7].cpu_seconds == 100 / ticks


def test_a_number_that_went_to_another_process_while_it_was_read_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat(tmp_path, 7, started=5)
    look = os.listdir

    def meanwhile(path: Path) -> list[str]:
        stat(tmp_path, 7, started=6)
        return look(path)

    monkeypatch.setattr(os, "listdir", meanwhile)
    assert read_figures([7], proc=tmp_path) == {}


def test_the_state_of_a_process_is_one_letter(tmp_path: Path) -> None:
    stat(tmp_path, 7, started=5, state="T")
    assert process_state(7, proc=tmp_path) == "T"
    assert process_state(8, proc=tmp_path) == ""
