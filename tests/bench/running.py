"""Runs cases in rounds and keeps what was measured in one file, so that a run can be taken up."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import msgspec

from tests.bench.cases import ProgramError
from tests.bench.machine import Machine, Watch, this_machine, wait_until_quiet
from tests.bench.samples import Sample, of, rotated, rounded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.bench.cases import Case


class Results(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of results. `at`: UTC, the last run that added to it."""

    machine: Machine
    at: str
    samples: tuple[Sample, ...] = ()

    def without(self, case: str) -> tuple[Sample, ...]:
        return tuple(one for one in self.samples if one.case != case)

    def has(self, name: str, case: Case, rounds: int) -> bool:
        """Whether every way of a case was run that often."""
        wanted = min(rounds, case.rounds)
        return all(len(of(self.samples, name, way)) >= wanted for way in case.ways)


def read(path: Path) -> Results | None:
    return msgspec.json.decode(path.read_bytes(), type=Results) if path.exists() else None


def write(path: Path, results: Results) -> None:
    """One sample a line, so that two files can be compared."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = msgspec.json.encode(msgspec.structs.replace(results, samples=()))
    lines = b",\n".join(msgspec.json.encode(one) for one in results.samples)
    path.write_bytes(head[:-1] + b',"samples":[\n' + lines + b"\n]}\n")


def run(
    cases: Mapping[str, Case],
    path: Path,
    *,
    rounds: int,
    quiet_s: float,
    tell: Callable[[str], None],
    kept: Callable[[Results], None],
    resume: bool = False,
) -> Results:
    """Measure these cases anew, keep those that the file has besides. Written after each case, and
    then given to `kept`. `resume`: cases that the file has whole are not run again."""
    machine = this_machine()
    results = read(path) or Results(machine, "")
    if results.machine != machine:
        tell(f"{path} is of another machine or other versions: begun anew")
        results = Results(machine, "")
    for name, case in cases.items():
        if resume and results.has(name, case, rounds):
            continue
        began = time.monotonic()
        samples = _case(name, case, min(rounds, case.rounds), quiet_s=quiet_s, tell=tell)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        results = Results(machine, at, (*results.without(name), *samples))
        write(path, results)
        kept(results)
        tell(f"{name}: {len(samples)} runs in {time.monotonic() - began:.0f} s")
    return results


def _case(
    name: str, case: Case, rounds: int, *, quiet_s: float, tell: Callable[[str], None]
) -> list[Sample]:
    samples = []
    for number in range(rounds):
        for way in rotated(list(case.ways), number):
            wait_until_quiet(quiet_s)
            watch = Watch()
            try:
                figures = case.ways[way]()
            except (ProgramError, AssertionError, OSError, subprocess.SubprocessError) as error:
                tell(f"{name}, {way}, round {number + 1} failed: {_short(error)}")
                continue
            samples.append(Sample(name, way, number, rounded(figures), round(watch.others(), 3)))
        tell(f"{name}: round {number + 1} of {rounds}")
    return samples


def _short(error: Exception) -> str:
    """The end of what a failed program said, where its reason is."""
    return str(error).strip()[-300:] or type(error).__name__
