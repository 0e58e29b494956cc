"""One command of `observant-host` as its process would run it, in this process: a start of Python
and its imports costs more than most commands. For what is not about the process itself."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, NamedTuple

import pytest

from observant_host.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import IO


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def command(*argv: str, cwd: Path, env: Mapping[str, str]) -> Ended:
    """Everything that it and its children write is taken from the file descriptors; nobody is there
    to be asked."""
    with (
        TemporaryFile("w+") as out,
        TemporaryFile("w+") as err,
        Path(os.devnull).open() as nobody,
        pytest.MonkeyPatch.context() as on,
    ):
        for name in os.environ.keys() - env.keys():
            on.delenv(name)
        for name, value in env.items():
            on.setenv(name, value)
        on.chdir(cwd)
        on.setattr(sys, "stdin", nobody)
        with _written_to(1, out), _written_to(2, err), redirect_stdout(out), redirect_stderr(err):
            code = run(argv)
            sys.stdout.flush()
            sys.stderr.flush()
        return Ended(code, _text(out), _text(err))


@contextmanager
def _written_to(number: int, file: IO[str]) -> Iterator[None]:
    kept = os.dup(number)
    os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
