"""The sentences about a child that could not start or has ended. Pure."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from observant_host.errors import SpawnFailed
from observant_host.transports.oom import BY_A_SHELL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.transports.base import EndKind

LAST_WORDS_CHARS: Final = 300
"""Of stderr, in a sentence; the whole tail stands beside it."""

UNENDING: Final = "was closed but could not be ended, even by SIGKILL"


def exit_phrase(code: int | None) -> str:
    """ "exited with status 3", "was ended by signal 9 (SIGKILL)"; code as in `End.exit_code`."""
    if code is None:
        return "ended, its exit status is unknown"
    if code >= 0:
        below = " (what it had started was ended by SIGKILL)" if code == BY_A_SHELL else ""
        return f"exited with status {code}{below}"
    try:
        name = f" ({signal.Signals(-code).name})"
    except ValueError:
        name = ""
    return f"was ended by signal {-code}{name}"


def end_detail(
    server: str,
    kind: EndKind,
    *,
    exit_code: int | None,
    exited: bool,
    stderr_tail: str,
    killed: str = "",
) -> str:
    """How a life ended, as one sentence with the last words of stderr. `killed` is what is known
    of a SIGKILL that is not ours."""
    what = _what(kind, exit_phrase(exit_code) + killed if exited else None)
    return f'server "{server}" {what}{_last_words(stderr_tail)}'


def _what(kind: EndKind, exit_said: str | None) -> str:
    match kind:
        case "exit":
            return exit_said or exit_phrase(None)
        case "eof":
            return "closed its stdout but kept running, so it is ended"
        case "lost":
            return "closed its stdin but kept running, so it is ended"
        case "closed":
            return f"was closed and {exit_said}" if exit_said else UNENDING


def _last_words(stderr_tail: str) -> str:
    lines = [line.strip() for line in stderr_tail.splitlines() if line.strip()]
    if not lines:
        return ""
    return f"; its last words on stderr: {' / '.join(lines[-3:])[-LAST_WORDS_CHARS:]}"


def spawn_failed(
    server: str,
    argv: tuple[str, ...],
    *,
    cwd: str | None,
    environment: Mapping[str, str],
    error: Exception | None,
) -> SpawnFailed:
    """The error with its fix. Names the program only: arguments may hold secrets."""
    if not argv or not argv[0]:
        return SpawnFailed(f'server "{server}" has an empty command; set "command" to a program')
    why = _why(argv[0], cwd, environment, error)
    return SpawnFailed(f'server "{server}": cannot start "{argv[0]}": {why}')


def _why(
    program: str, cwd: str | None, environment: Mapping[str, str], error: Exception | None
) -> str:
    number = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(number) if number else str(error)
    if cwd is not None and not Path(cwd).is_dir():
        return f'its working directory "{cwd}" is not there ({reason}); create it or mend "cwd"'
    match number:
        case errno.ENOENT:
            return _not_found(program, cwd, environment, reason)
        case errno.EACCES:
            return f"{reason}; make it executable (chmod +x) or start it through its interpreter"
        case errno.ENOEXEC:
            return f"{reason}; it lacks a #! line, or was built for another kind of machine"
        case errno.EMFILE | errno.ENFILE:
            return f"{reason}; raise the limit of open files (ulimit -n)"
        case errno.E2BIG:
            return f"{reason}; its arguments and environment are too large"
        case errno.EAGAIN | errno.ENOMEM:
            return f"{reason}; the machine, or this user's limit of processes, is exhausted"
        case _:
            return reason


def _not_found(program: str, cwd: str | None, environment: Mapping[str, str], reason: str) -> str:
    found = Path(cwd or ".", program).exists()
    if " " in program and not found:
        return f'{reason}; "command" is one program, put what follows it into "args"'
    if "/" in program:
        if found:
            return f"{reason}; the file is there, but the interpreter in its first line is not"
        return f'{reason}; there is no such file, mend "command"'
    folders = ", ".join(dict.fromkeys(os.get_exec_path(environment)))
    return f"{reason}; not found on PATH (looked in {folders}); install it, or give its full path"
