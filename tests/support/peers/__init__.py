"""Servers that behave as told, well or badly, as real child processes.

`scripted` is the flexible one (its module docstring lists every option); the other files are small
programs of one family each. All are started with `python -I -S`, which takes about 30 ms.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def program(file: str, *arguments: str) -> tuple[str, ...]:
    """argv that runs one of the programs beside this file."""
    return (sys.executable, "-I", "-S", str(HERE / file), *arguments)


def scripted(**options: object) -> tuple[str, ...]:
    """argv of the scripted server: `scripted(era="legacy", tools="echo,die", log=path)`.

    Underscores become dashes, True becomes "yes", None and False leave an option out; a list gives
    a repeatable option several times.
    """
    arguments: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        for one in value if isinstance(value, list) else [value]:
            arguments += [f"--{name.replace('_', '-')}", "yes" if one is True else str(one)]
    return program("scripted.py", *arguments)


def events(log: Path | str, kind: str | None = None) -> list[dict[str, Any]]:
    """What a scripted server recorded so far (`--log`); a line still being written is left out."""
    path = Path(log)
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    return [event for event in found if kind is None or event["ev"] == kind]


def received(log: Path | str, method: str | None = None) -> list[dict[str, Any]]:
    """The messages the server got, as JSON objects, oldest first."""
    messages = [event["msg"] for event in events(log, "in")]
    return [msg for msg in messages if method is None or msg.get("method") == method]
