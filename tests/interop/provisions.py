"""Other people's software, installed once into a cache folder and never into the repository.

`OBSERVANT_HOST_INTEROP_CACHE` names the folder (default: the user's cache folder). What is there is
found by a digest of its lock file, so a changed lock is installed anew beside the old one. Needs
pip and node; uv is taken where it is, else installed by pip into the folder too.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
INSTALL_LIMIT_S = 300
"""An installation takes 20 s with a near mirror; one that takes this long hangs."""

RELEASED_BEFORE = "2026-11-29T00:00:00Z"
"""Launchers resolve what they start as of this moment: what is published later changes no test."""


def cache_folder() -> Path:
    named = os.environ.get("OBSERVANT_HOST_INTEROP_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("observant-host-interop"))


def launcher_environment(caches: Path | None = None) -> dict[str, str]:
    """PATH with uv on it, and package caches of launchers below `caches` (default: the folder)."""
    below = caches or cache_folder()
    return {
        "PATH": f"{uv().parent}{os.pathsep}{os.environ['PATH']}",
        "UV_CACHE_DIR": str(below / "uv"),
        "npm_config_cache": str(below / "npm"),
    }


def uv() -> Path:
    """The uv beside this interpreter, on PATH, or installed into the cache folder."""
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    return Path(found) if found else provided("uv-tool", b"uv>=0.8", _uv_tool) / "bin/uv"


def python_with(name: str) -> Path:
    """An interpreter with exactly what `locks/NAME.txt` says."""
    lock = HERE / "locks" / f"{name}.txt"

    def install(folder: Path) -> None:
        run(str(uv()), "venv", "-q", "--python", sys.executable, str(folder))
        run(str(uv()), "pip", "sync", "-q", "--python", str(folder / "bin/python"), str(lock))

    return provided(name, lock.read_bytes(), install) / "bin/python"


def node_folder(source: Path) -> Path:
    """A copy of a folder with package.json and package-lock.json, installed; scripts never run."""
    files = sorted(path for path in source.iterdir() if path.is_file())

    def install(folder: Path) -> None:
        folder.mkdir()
        for path in files:
            shutil.copy(path, folder)
        command = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        run(*command, cwd=folder)

    return provided(source.name, b"".join(path.read_bytes() for path in files), install)


def provided(name: str, recipe: bytes, install: Callable[[Path], None]) -> Path:
    """The folder made by `install` from `recipe`; whole, or made anew. One process at a time."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(recipe + version.encode()).hexdigest()[:12]
    folder = cache_folder() / f"{name}-{digest}"
    whole = folder / ".whole"
    with _alone(name):
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            whole.touch()
    return folder


@contextmanager
def _alone(name: str) -> Iterator[None]:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _uv_tool(folder: Path) -> None:
    run(sys.executable, "-m", "venv", str(folder))
    run(str(folder / "bin/pip"), "install", "-q", "uv>=0.8")


def run(*argv: str, cwd: Path | None = None) -> None:
    """Run an installer to its end; raises RuntimeError with what it said."""
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, cwd=cwd, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed: {done.stderr[-2000:]}")
