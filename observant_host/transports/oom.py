"""Whether the kernel killed a child for want of memory, as far as an ordinary user can see.

Its message is in a log that few may read. The count that it keeps for each control group can be
read by anybody, and children are in the group of their host.

Source: Linux admin-guide/cgroup-v2 › memory.events; cgroup-v1/memory › memory.oom_control.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
CGROUPS: Final = Path("/sys/fs/cgroup")

BY_A_SHELL: Final = 128 + signal.SIGKILL
"""How a launcher (sh, npx, uv) reports that what it started was killed so."""


class OomKills:
    """The kernel's count for one host, and how many of them have been said to be a child's end.

    `begin` and `explain` block: use a thread.
    """

    def __init__(self, *, proc: Path = PROC, cgroups: Path = CGROUPS) -> None:
        self._proc = proc
        self._cgroups = cgroups
        self._known: int | None = None
        self.began = False

    def begin(self) -> None:
        """What was counted before the first child is not about ours."""
        if not self.began:
            self._known = count(proc=self._proc, cgroups=self._cgroups)
            self.began = True

    def explain(self) -> str:
        """Why a child may have ended by a SIGKILL that we did not send; the next step with it."""
        now = count(proc=self._proc, cgroups=self._cgroups)
        if now is not None and self._known is not None and now > self._known:
            self._known += 1  # the others are told by their own ends
            return (
                f": the kernel killed it for want of memory (oom_kill of its control group is {now}"
                "); give it or its container more, or set restart_above_mb"
            )
        return (
            ", which nobody here sent; the kernel's out-of-memory killer does that: see "
            "restart_above_mb, dmesg"
        )


def was_killed(exit_code: int | None) -> bool:
    """Whether SIGKILL ended it, or what it had started itself."""
    return exit_code in (-signal.SIGKILL, BY_A_SHELL)


def count(*, proc: Path = PROC, cgroups: Path = CGROUPS) -> int | None:
    """Processes of our control group that the out-of-memory killer has killed; None: unknown."""
    for file in _files(proc, cgroups):
        try:
            lines = file.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            continue
        for key, _, value in (line.partition(" ") for line in lines):
            if key == "oom_kill" and value.strip().isdigit():
                return int(value)
    return None


def _files(proc: Path, cgroups: Path) -> list[Path]:
    """Where it may be. In a container the path is often that of the host outside, so the root that
    we see is tried too."""
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found: list[Path] = []
    for line in lines.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            root, name = cgroups, "memory.events"
        elif "memory" in controllers.split(","):
            root, name = cgroups / "memory", "memory.oom_control"
        else:
            continue
        found += [root / path.lstrip("/") / name, root / name]
    return found
