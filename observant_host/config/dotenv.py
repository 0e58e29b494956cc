"""`.env` files as other clients read them: NAME=value, quotes, `export`, comments; no expansion."""

from __future__ import annotations

import re
from typing import Final

_LINE: Final = re.compile(
    r"""^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*
        (?: '([^']*)' | "((?:[^"\\]|\\.)*)" | (.*?) )\s*(?:(?<=[\s'"])\#.*)?$""",
    re.VERBOSE,
)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


def read_dotenv(text: str) -> dict[str, str]:
    """Variables by name, the last one winning. Lines that are no assignment are skipped."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        name, single, double, bare = match.groups()
        if double is not None:
            found[name] = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), double)
        else:
            found[name] = single if single is not None else bare
    return found
