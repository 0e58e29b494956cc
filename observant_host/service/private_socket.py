"""The private unix socket of a host: where it lies, how it is made, how it is opened.

A folder may lie deeper than the 107 bytes that a socket's address holds; then both sides go
through a descriptor of the folder.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = "host.sock"
ADDRESS_BYTES: Final = 107
"""Of sun_path on Linux, less its terminating zero."""
BACKLOG: Final = 128
PRINCIPAL_HEADER: Final = "X-Observant-Host-Principal"
"""Who a client says to be: it is the host's own user anyway, and the record shall have a name."""


def socket_path(state_dir: Path) -> Path:
    return state_dir / NAME


def listen(state_dir: Path) -> socket.socket:
    """A listening socket that only this user can open.

    The caller holds the folder's instance lock: a socket that lies there is a dead host's.
    """
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = socket_path(state_dir)
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with address(state_dir) as short:
            listener.bind(short)
        path.chmod(0o600)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def remove(state_dir: Path) -> None:
    """Take it away. The caller holds the folder's instance lock."""
    with suppress(OSError):
        socket_path(state_dir).unlink()


@contextmanager
def address(state_dir: Path) -> Iterator[str]:
    """A spelling of the socket's path that fits into a socket address, while in the block."""
    path = str(socket_path(state_dir))
    if len(os.fsencode(path)) <= ADDRESS_BYTES:
        yield path
        return
    folder = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{NAME}"
    finally:
        os.close(folder)
