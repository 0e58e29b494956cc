"""The soft limit of open files is raised for us, and known, so that children get the old one."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import resource
from observant_host.cli.limits import raise_open_files
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
print(raise_open_files(300), resource.getrlimit(resource.RLIMIT_NOFILE)[0], raise_open_files(300))
"""


def test_the_soft_limit_is_raised_once_and_the_old_one_is_told() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout.split() == ["200", "300", "None"]
