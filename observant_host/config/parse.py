"""From the bytes of an `observant-host.toml` and what overlays it to one HostConfig."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from observant_host.config.model import HostConfig
from observant_host.config.origin import KeyPath, Leaf, Origin

if TYPE_CHECKING:
    from observant_host.config.expand import Lookup


class TomlFile(msgspec.Struct, frozen=True):
    """One TOML file, checked for unknown keys, its values still as written."""

    name: str
    leaves: Mapping[KeyPath, Leaf]
    imports: tuple[str, ...]


class ImportedServer(msgspec.Struct, frozen=True, kw_only=True):
    """One server of another client's file, already in our keys.

    `literal_env` holds variables of an `envFile`, taken as they are (no `${…}` in them).
    `problem`: why it cannot run here (the other servers still do).
    """

    name: str
    leaves: Mapping[KeyPath, Leaf]
    literal_env: Mapping[str, str] = {}
    problem: str | None = None


class Assembled(msgspec.Struct, frozen=True):
    """`origins` has every key of every table; `shown` the same with masked values to print.

    `secrets`: every value that must never be shown, for the masker. `notices` and `warnings` are
    sentences.
    """

    config: HostConfig
    origins: Mapping[KeyPath, Origin]
    shown: Mapping[KeyPath, object]
    secrets: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_toml(data: bytes, *, name: str, folder: str) -> TomlFile:
    """Raises ConfigError with every problem of the file at once."""
    raise NotImplementedError


def assemble(
    file: TomlFile | None,
    *,
    imported: Sequence[ImportedServer] = (),
    variables: Mapping[str, str] = {},
    flags: Mapping[str, object] = {},
    lookup: Lookup,
) -> Assembled:
    """Flag > OBSERVANT_HOST_<TABLE>__<KEY> > file > import > defaults. Raises ConfigError."""
    raise NotImplementedError
