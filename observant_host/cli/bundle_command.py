"""`bundle`: all that somebody needs who is to help, in one archive, without secrets."""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from observant_host.cli.options import command, config_option, pass_screen
from observant_host.cli.session import Session, run_async
from observant_host.errors import ConfigError, HostError
from observant_host.timing.clock import SystemClock

if TYPE_CHECKING:
    from observant_host.cli.bundle_parts import Part
    from observant_host.cli.output import Screen

DAYS: float = 7.0


@command(
    "bundle",
    examples=(
        ("bundle", "Everything of the last seven days, into this folder."),
        ("bundle --output /tmp/for-support.tar.gz --days 1", "Less of it, to this file."),
    ),
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The archive. Default: observant-host-bundle-TIME.tar.gz in this folder.",
)
@click.option(
    "--days", type=click.FloatRange(min=0), default=DAYS, show_default=True, help="Of decisions."
)
@config_option
@pass_screen
def bundle(screen: Screen, *, output: Path | None, days: float, config: Path | None) -> None:
    """Pack what somebody needs who is to help: configuration, states, decisions, log, metrics,
    doctor and versions.

    Secrets of the configuration are masked in every part. Arguments and results of calls are not in
    it: the host keeps none. Look into it before you send it: it names your servers and tools. Works
    with a running host and without one.
    """
    from observant_host.cli.bundle_parts import gather, stamp_of

    config = _file_of_running_host(config)
    now_ns = SystemClock().wall_ns()
    stamp = stamp_of(now_ns)
    path = output or Path(f"observant-host-bundle-{stamp}.tar.gz")
    parts = run_async(gather(Session(screen, config), given=config, days=days, now_ns=now_ns))
    try:
        write(path, parts, folder=f"observant-host-bundle-{stamp}", mtime=now_ns // 10**9)
    except OSError as error:
        raise HostError(f"{path} cannot be written: {error.strerror or error}") from None
    for part in parts:
        size = f"{len(part.text):>9,} B" if part.text else f"{'-':>9}  "
        screen.answer(f"{size}  {part.name:<20} {part.about}")
    screen.answer(str(path))


def _file_of_running_host(given: Path | None) -> Path | None:
    """Where nothing is given or found; what is wrong with it is told by `doctor`'s part."""
    from observant_host.cli.running_file import file_meant
    from observant_host.config_files import Surroundings

    with suppress(ConfigError):
        return file_meant(given, Surroundings.of_process())
    return given


def write(path: Path, parts: list[Part], *, folder: str, mtime: int) -> None:
    """Private to the user. Raises OSError, where the file is there already too."""
    path.touch(mode=0o600, exist_ok=False)
    with tarfile.open(path, "w:gz") as archive:
        for part in parts:
            if part.text:
                member = tarfile.TarInfo(f"{folder}/{part.name}")
                member.size, member.mtime, member.mode = len(part.text), mtime, 0o600
                archive.addfile(member, io.BytesIO(part.text))
