"""Which file is meant where nobody names one and none lies in its place: that of the host which
runs from the user's own state folder, where all commands that ask a host find it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from observant_host.errors import ConfigError, HostError

if TYPE_CHECKING:
    from observant_host.config_files import Surroundings


def file_meant(given: Path | None, around: Surroundings) -> Path | None:
    """`given`, or the running host's where nothing else can be found; None: nothing is.

    Raises ConfigError with every problem where the running host could not read its own by now.
    """
    from observant_host import config_files

    try:
        config_files.find(given, around)
    except ConfigError:
        return asyncio.run(_of_running(around.folder("state")))
    return given


async def _of_running(state_dir: Path) -> Path | None:
    """A reload that is only planned tells which file it would read, and changes nothing."""
    from observant_host.service.client import HostClient

    client = await HostClient.connect(state_dir)
    if client is None:
        return None
    try:
        planned = msgspec.json.decode(await client.reload(dry_run=True))
    except ConfigError:
        raise
    except HostError:
        return None
    finally:
        await client.close()
    return Path(planned["file"]) if planned["file"] else None
