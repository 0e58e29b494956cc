"""The demo's server behind a URL: no child of the host, but somebody else's process, as they are.

The demo starts it before the host and stops it after. Its port is chosen here and its socket is
handed down, so nobody waits for it and nobody can take the port first.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STOP_S: Final = 3.0
BACKLOG: Final = 16


@contextmanager
def serving(script: Path, name: str, *, token: Path, log: Path) -> Iterator[str]:
    """Its URL while it runs. It ends with this block, or with this process, however that ends."""
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        options = ["--socket", str(listening.fileno()), "--token", str(token), "--log", str(log)]
        child = subprocess.Popen(
            [sys.executable, str(script), name, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(listening.fileno(),),
            start_new_session=True,  # Ctrl-C is for the host, which stops first
        )
    try:
        yield url
    finally:
        _stop(child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
