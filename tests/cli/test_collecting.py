"""What the command line sets aside, and that importing the library does nothing of the kind."""

from __future__ import annotations

import subprocess
import sys

SET_ASIDE = """
import gc
from observant_host.cli.collecting import set_aside
set_aside()
class Cycle: pass
for _ in range(30_000):
    one = Cycle()
    one.itself = one
young = gc.get_stats()[0]["collections"]
print(gc.get_freeze_count() > 1000, young > 1, gc.get_count()[0] < 20_000)
"""

LIBRARY = """
import gc
before = gc.get_threshold()
import observant_host
from observant_host import Host, StdioServer
Host()
print(gc.get_threshold() == before, gc.get_freeze_count(), gc.isenabled())
"""


def told(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_what_is_set_aside_is_looked_through_no_more_and_later_garbage_is_still_found() -> None:
    assert told(SET_ASIDE) == "True True True"


def test_the_library_leaves_the_programs_own_collector_alone() -> None:
    assert told(LIBRARY) == "True 0 True"
