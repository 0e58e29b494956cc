"""The official conformance suite's server scenarios through a running host, beside the same ones
against the server behind it: what that server passes by itself, it passes through the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop import provisions
from tests.interop.conformance_server import run, side_by_side, table
from tests.interop.eleven import SERVERS
from tests.interop.endpoint import endpoint

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.conformance_server import Pair

pytestmark = pytest.mark.interop

MODERN, LEGACY = "2026-07-28", "2025-11-25"
NO_WAY_BACK = "server-sse-polling"
"""A tool ends its own stream of events, which has no way back in 2026-07-28: with a server of that
revision there is nothing to see."""
RUNS = {
    (MODERN, "python_sdk_2"): frozenset[str](),
    (LEGACY, "python_sdk_2"): frozenset(
        {
            # Tools that ask in the middle of a call, as was done before 2026-07-28. The host speaks
            # 2026-07-28 with this server, where none can: the same tools fail for any client of it.
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
            "tools-call-elicitation",
            "tools-call-sampling",
            NO_WAY_BACK,
        }
    ),
    (LEGACY, "python_sdk_1"): frozenset(
        {
            # It lets resources be followed, but does not announce it: the host asks only for what
            # was announced.
            "resources-subscribe",
            "resources-unsubscribe",
        }
    ),
    (MODERN, "typescript_sdk_2"): frozenset(),
    (LEGACY, "typescript_sdk_2"): frozenset({NO_WAY_BACK}),
    (LEGACY, "typescript_sdk_2 legacy"): frozenset(),
}
"""What is run, and which scenarios another server on the same SDK has to show."""

CASES = [pytest.param(run, id=" ".join(run)) for run in RUNS]


class Tables:
    """Each run once, when it is first asked for; printed for whoever reads the log."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._found: dict[tuple[str, str], dict[str, Pair]] = {}

    def of(self, run: tuple[str, str]) -> dict[str, Pair]:
        if run not in self._found:
            self._found[run] = side_by_side(self._folders.mktemp("suite"), *run)
            print(f"\n{' '.join(run)}\n{table(self._found[run])}")
        return self._found[run]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory)


@pytest.mark.parametrize("run", CASES)
def test_what_a_server_passes_by_itself_it_passes_through_a_host(
    tables: Tables, run: tuple[str, str]
) -> None:
    failing = {
        name: str(pair.through)
        for name, pair in tables.of(run).items()
        if not pair.excused and not pair.passes
    }
    assert failing.keys() == RUNS[run], "\n".join(failing.values())


@pytest.mark.parametrize("sdk", ["python", "typescript"])
@pytest.mark.parametrize(("revision", "scenarios"), [(MODERN, 40), (LEGACY, 33)])
def test_every_scenario_of_a_revision_passes_with_a_server_on_each_sdk(
    tables: Tables, revision: str, scenarios: int, sdk: str
) -> None:
    runs = [tables.of(run) for run in RUNS if run[0] == revision and run[1].startswith(sdk)]
    passed = {name for pairs in runs for name, pair in pairs.items() if pair.passes}
    assert set().union(*runs) - passed == set()
    assert len(passed) == scenarios


def test_names_that_collide_are_told_apart_by_names_that_are_legal(tmp_path: Path) -> None:
    """As named by default; canonical names have a slash, which the revision advises against."""
    twin = {
        "command": str(provisions.python_with("python_sdk_2")),
        "args": [str(SERVERS / "featured.py")],
    }
    with endpoint(tmp_path / "host", {"first": twin, "second": twin}, names="api") as url:
        found = run(url, MODERN, tmp_path / "out", "--scenario=tools-list")
    assert found["tools-list"].verdict == "PASS", str(found["tools-list"])
