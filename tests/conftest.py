"""Property tests judge what the code does, not how busy the machine is; and what was sent in all
tests that look at it is summed up at the end."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.tap import ALL_SENT, summary

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

settings.register_profile(
    "any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any_machine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # started in a shell's background: the children under test would inherit the deafness
    signal.signal(signal.SIGINT, signal.default_int_handler)


SLOW_ROOMS = ("scenarios", "cli", "service", "supervision", "transports")
"""They start processes and wait for them: begun first, so that no worker ends with them alone."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two workers a processor: a test waits for processes about as long as it computes."""
    return 2 * len(os.sched_getaffinity(0))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not set(SLOW_ROOMS).intersection(item.path.parts))


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
