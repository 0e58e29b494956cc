"""What survives a restart: whole or not at all, private, and never fatal when it is broken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import state_files
from observant_host.decisions.names import Grant, Grants
from observant_host.errors import ConfigError, InstanceLocked
from observant_host.state_files import (
    Allowance,
    InstanceLock,
    LastEra,
    Memory,
    MemoryFile,
    Moments,
    ProvenModern,
    write_atomically,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> MemoryFile:
    return MemoryFile(tmp_path / "state" / "memory.json")


def full() -> Memory:
    return Memory(
        grants=Grants({"search": Grant("a"), "old": Grant("b", 12.5)}, {"ask": Grant("a")}),
        modern={"sha256:1": ProvenModern("a", "2026-07-28", 1.0)},
        eras={"a": LastEra("modern", "2026-07-28", 1.0)},
        allowances={"b": Allowance("sha256:2", 99.0, "old box", "cli:me", 2.0)},
        moments={"a": Moments(last_ready=3.0)},
    )


def known(memory: Memory) -> tuple[Any, ...]:
    return memory.grants, memory.modern, memory.eras, memory.allowances, memory.moments


def test_an_absent_file_is_an_empty_memory(file: MemoryFile) -> None:
    loaded = file.load()
    assert loaded.warning is None
    assert known(loaded.memory) == known(Memory())


def test_what_was_saved_is_read_again(file: MemoryFile) -> None:
    file.save(full())
    loaded = file.load()
    assert loaded.warning is None
    assert known(loaded.memory) == known(full())


def test_file_and_folder_are_private_even_where_the_folder_was_not(file: MemoryFile) -> None:
    file.path.parent.mkdir(mode=0o755)
    file.save(full())
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


def test_unknown_members_of_a_newer_version_are_kept_and_its_version_too(
    file: MemoryFile,
) -> None:
    file.save(full())
    document = json.loads(file.path.read_bytes())
    document["version"] = 7
    document["later"] = {"x": 1}
    document["eras"]["a"]["later"] = [1.5]
    document["grants"]["resources"] = {"u": 1}
    file.path.write_text(json.dumps(document))

    memory = file.load().memory
    memory.eras["a"] = LastEra("legacy", "2025-06-18", 5.0)
    memory.allowances.clear()
    file.save(memory)

    after = json.loads(file.path.read_bytes())
    assert (after["version"], after["later"]) == (7, {"x": 1})
    assert after["eras"]["a"] == {
        "era": "legacy",
        "version": "2025-06-18",
        "time": 5.0,
        "later": [1.5],
    }
    assert after["grants"]["resources"] == {"u": 1}
    assert after["allowances"] == {}


def test_one_unreadable_record_is_left_out_and_the_others_stay(file: MemoryFile) -> None:
    file.save(full())
    document = json.loads(file.path.read_bytes())
    document["modern"]["sha256:bad"] = {"server": 5}
    document["eras"] = "odd"
    file.path.write_text(json.dumps(document))
    memory = file.load().memory
    assert set(memory.modern) == {"sha256:1"}
    assert memory.eras == {}
    file.save(memory)
    assert file.load().warning is None


@pytest.mark.parametrize("data", [b"", b'{"version": 1', b"\xff\xfe", b"[1]", b"[" * 9999])
def test_a_corrupt_file_is_set_aside_with_a_warning(file: MemoryFile, data: bytes) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(data)
    loaded = file.load()
    assert loaded.warning is not None
    assert "set aside" in loaded.warning
    assert file.path.with_name("memory.json.corrupt").read_bytes() == data
    assert file.load().warning is None


def test_a_file_that_cannot_be_read_is_a_warning(file: MemoryFile) -> None:
    file.path.mkdir(parents=True)
    loaded = file.load()
    assert "cannot be read" in str(loaded.warning)
    assert file.path.is_dir()


def test_only_the_latest_proofs_are_kept(file: MemoryFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "MAX_PROVEN", 2)
    proven = {f"f{i}": ProvenModern("a", None, float(10 - i)) for i in range(4)}
    file.save(Memory(modern=proven))
    assert set(file.load().memory.modern) == {"f0", "f1"}


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(
    file: MemoryFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.save(full())

    def full_disk(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        file.save(Memory())
    assert known(file.load().memory) == known(full())
    assert [p.name for p in file.path.parent.iterdir()] == ["memory.json"]


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(file: MemoryFile) -> None:
    file.save(full())
    code = (
        "import sys; from pathlib import Path; from observant_host.state_files import *\n"
        "f = MemoryFile(Path(sys.argv[1])); m = f.load().memory; print('go', flush=True)\n"
        "while True: f.save(m)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(file.path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(50):
            assert known(file.load().memory) == known(full())
        writer.send_signal(signal.SIGKILL)
    assert known(file.load().memory) == known(full())


def test_writing_needs_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "x", b"")


def test_a_second_host_is_refused_and_told_who_holds_the_folder(tmp_path: Path) -> None:
    with InstanceLock(tmp_path) as first:
        first.acquire()
        with pytest.raises(InstanceLocked, match=f"pid {os.getpid()}.*state_dir"):
            InstanceLock(tmp_path).acquire()
    with InstanceLock(tmp_path):
        pass
    first.release()


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from observant_host.state_files import *\n"
        "InstanceLock(Path(sys.argv[1])).acquire(); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(InstanceLocked, match=f"pid {holder.pid}"):
            InstanceLock(tmp_path).acquire()
        holder.kill()
    InstanceLock(tmp_path).acquire()


def test_a_folder_of_no_use_is_named_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        ConfigError, match=r"host\.state_dir: .*/file/state cannot be used: Not a dir"
    ):
        InstanceLock(tmp_path / "file" / "state").acquire()


def test_a_lock_that_fails_otherwise_leaks_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_descriptor: int, _length: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", broken)
    with pytest.raises(OSError, match="Input/output"):
        InstanceLock(tmp_path).acquire()
    monkeypatch.undo()
    InstanceLock(tmp_path).acquire()
