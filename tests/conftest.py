"""Property tests judge what the code does, not how busy the machine is; and what was sent in all
tests that look at it is summed up at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

settings.register_profile(
    "any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any_machine")


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    from tests.support.tap import summary

    for line in summary():
        terminalreporter.write_line(line)
