"""Servers behind a URL that nobody here wrote, or that stand on other people's libraries."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from observant_host import HttpServer
from tests.interop import provisions
from tests.interop.eleven import LEGACY, MODERN, NPM, SERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

HTTP_SSE = "2024-11-05"
EVERYTHING = {"python_sdk_1": "mcp==1.30.0", "python_sdk_2": "mcp==2.3.0"}
"""Releases whose everything-server is used, by the lock it runs with."""

START_LIMIT_S = 120
"""npx may install first."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """How one is started (`PORT` stands for its port), and what it must come to."""

    argv: tuple[str, ...]
    version: str
    path: str = "/mcp"
    sse: bool = False
    env: dict[str, str] = {}

    @property
    def allowance(self) -> bool | list[str]:
        """HTTP+SSE is of 2024-11-05, whatever revision is then spoken over it."""
        if self.sse:
            return [HTTP_SSE, self.version]
        return False if self.version == MODERN else [self.version]

    def endpoint(self, port: int) -> HttpServer:
        # Some insist on the name: they refuse other values of Host against DNS rebinding.
        url = f"http://localhost:{port}{self.path}"
        return HttpServer(url, transport="sse" if self.sse else "auto")


def kinds() -> dict[str, Kind]:
    """Each by its name; installs what they need."""
    loopback = Path(__file__).parent / "conformance/loopback.cjs"
    npm = {"PORT": "PORT", "NODE_OPTIONS": f"--require={loopback}"}
    npx = ("npx", "-y", f"@modelcontextprotocol/server-everything@{NPM}")
    typescript = provisions.node_folder(SERVERS / "typescript_sdk_2") / "server.mjs"
    return {
        "python everything-server": everything("python_sdk_2"),
        "typescript-sdk-2": Kind(argv=("node", str(typescript), "http", "PORT"), version=MODERN),
        "fastmcp-4": Kind(argv=_own("fastmcp_4", "http"), version=MODERN),
        "python-sdk-2": Kind(argv=_own("python_sdk_2", "http"), version=MODERN),
        "python-sdk-1": Kind(argv=_own("python_sdk_1", "streamable-http"), version=LEGACY),
        "python-sdk-1 sse": Kind(
            argv=_own("python_sdk_1", "sse"), version=LEGACY, path="/sse", sse=True
        ),
        "server-everything": Kind(argv=(*npx, "streamableHttp"), version=LEGACY, env=npm),
        "server-everything sse": Kind(
            argv=(*npx, "sse"), version=LEGACY, env=npm, path="/sse", sse=True
        ),
    }


@contextmanager
def serving(kind: Kind, log: Path) -> Iterator[HttpServer]:
    """Run one until the block ends; its output goes to `log`."""
    port = _free_port()
    argv = [word.replace("PORT", str(port)) for word in kind.argv]
    variables = {name: value.replace("PORT", str(port)) for name, value in kind.env.items()}
    with log.open("wb") as file:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, **provisions.launcher_environment(), **variables},
            start_new_session=True,
        )
    try:
        _listens(process, port, log)
        yield kind.endpoint(port)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def everything(sdk: str) -> Kind:
    """The example server with all features that a release of the Python SDK comes with; for the
    TypeScript SDK, whose own one is in no package, ours."""
    name, _, legacy = sdk.partition(" ")
    version = LEGACY if legacy or name == "python_sdk_1" else MODERN
    if name == "typescript_sdk_2":
        script = provisions.node_folder(SERVERS / name) / "everything.mjs"
        return Kind(argv=("node", str(script), "PORT", legacy), version=version)
    return Kind(
        argv=_python(name, "-m", "mcp_everything_server", "--port", "PORT"),
        version=version,
        env={"PYTHONPATH": str(_example(EVERYTHING[name]))},
    )


def _example(release: str) -> Path:
    """The folder of its package, which a source distribution of the SDK carries."""

    def install(folder: Path) -> None:
        folder.mkdir()
        argv = ("download", "-q", "--no-deps", "--no-binary=mcp", release, "-d", str(folder))
        provisions.run(sys.executable, "-m", "pip", *argv)
        with tarfile.open(next(folder.glob("mcp-*.tar.gz"))) as packed:
            packed.extractall(folder, filter="data")

    name = "everything-server" if release == EVERYTHING["python_sdk_2"] else "everything-server-1"
    folder = provisions.provided(name, release.encode(), install)
    return next(folder.glob("mcp-*/examples/servers/everything-server"))


def _python(environment: str, *argv: str) -> tuple[str, ...]:
    return (str(provisions.python_with(environment)), *argv)


def _own(name: str, transport: str) -> tuple[str, ...]:
    return _python(name, str(SERVERS / f"{name}.py"), transport, "PORT")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    ends = time.monotonic() + START_LIMIT_S
    while True:
        assert process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < ends, f"nothing listens: {log.read_text()[-2000:]}"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
