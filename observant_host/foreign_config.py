"""The checked-in map of other people's JSON: what each key of other clients becomes here."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from observant_host.config.parse import ImportedServer


class ForeignFile(msgspec.Struct, frozen=True):
    """What one foreign file held. `env_files` maps a server to the env file it names."""

    servers: tuple[ImportedServer, ...] = ()
    env_files: Mapping[str, str] = {}
    notices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_foreign(
    data: bytes, *, name: str, folder: str, places: Mapping[str, str] = {}
) -> ForeignFile:
    """Raises ConfigError where nothing can be read at all; else one bad server costs itself."""
    raise NotImplementedError
