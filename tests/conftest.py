"""Property tests judge what the code does, not how busy the machine is; and what was sent in all
tests that look at it is summed up at the end."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.tap import ALL_SENT, summary

if TYPE_CHECKING:
    from pathlib import Path

    from _pytest.terminal import TerminalReporter

settings.register_profile(
    "any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("any_machine"), max_examples=1000)
settings.load_profile("any_machine")  # `--hypothesis-profile=thorough` looks ten times as long

# Else all of a thousand children compile anew what they import; who starts pytest may ask for that.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

if "PYTEST_XDIST_WORKER" in os.environ:
    # what the tests' own processes run is measured: in each child it would cost twice its start
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

gc.disable()  # until all is collected: thousands of tests are made, and nothing of them is garbage

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # started in a shell's background: the children under test would inherit the deafness
    signal.signal(signal.SIGINT, signal.default_int_handler)


ROOMS_OF_TIERS = ("browser", "interop", "soak")
"""Rooms whose tests all have the mark of this name."""

SLOW_ROOMS = ("scenarios", "cli", "service", "supervision", "transports")
"""They start processes and wait for them: begun first, so that no worker ends with them alone."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two workers a processor: a test waits for processes about as long as it computes."""
    return 2 * len(os.sched_getaffinity(0))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """No worker imports what it would then leave out."""
    name, rooms = collection_path.name, config.rootpath / "tests"
    of_tier = collection_path.parent == rooms and name in ROOMS_OF_TIERS
    return True if of_tier and f"not {name}" in config.option.markexpr else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not set(SLOW_ROOMS).intersection(item.path.parts))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: Any) -> None:
    """A worker of pytest-xdist hands over what was sent in its tests."""
    handed = getattr(session.config, "workeroutput", None)
    if handed is not None:
        handed["sent"] = [[*key, count] for key, count in ALL_SENT.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for revision, method, count in getattr(node, "workeroutput", {}).get("sent", ()):
        ALL_SENT[revision, method] += count


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    for line in summary():
        terminalreporter.write_line(line)
