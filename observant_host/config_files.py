"""Finds and reads configuration: the only place that touches files and variables for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from observant_host.config.parse import Assembled


class Surroundings(msgspec.Struct, frozen=True):
    """What of the machine configuration depends on."""

    variables: Mapping[str, str]
    current: Path
    home: Path
    platform: str

    @classmethod
    def of_process(cls) -> Surroundings:
        return cls(dict(os.environ), Path.cwd(), Path.home(), sys.platform)


class Loaded(msgspec.Struct, frozen=True):
    """`path` is the file that was read. `assembled.config` is what everything runs by."""

    path: Path
    assembled: Assembled
    imports: tuple[Path, ...] = ()


def find(explicit: str | Path | None, around: Surroundings) -> Path:
    """The file to use: given, OBSERVANT_HOST_CONFIG, or the user's own. Never the current folder.

    Raises ConfigError that names what lies in the current folder.
    """
    raise NotImplementedError


def load(
    explicit: str | Path | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    around: Surroundings | None = None,
) -> Loaded:
    """Find, read, import, overlay. `flags` maps "table.key" to a value. Raises ConfigError."""
    raise NotImplementedError


def default_state_dir(around: Surroundings) -> Path:
    """XDG state folder of the user (or the platform's), `observant-host` in it."""
    raise NotImplementedError
