"""References in values: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:PATH}`.

`$${` is a literal `${`. What cannot be resolved is an error that names the reference and the fix:
a half-expanded command must never be started.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Final

import msgspec


class UnresolvedError(Exception):
    """A reference that has no value here; `str()` names it and the fix."""


class Lookup(msgspec.Struct, frozen=True):
    """Where references get their values.

    `read_file(path, folder)` gives a file's text or raises UnresolvedError; `folder` is what a
    relative path is relative to.
    """

    variables: Mapping[str, str]
    read_file: Callable[[str, str], str]


class Expanded(msgspec.Struct, frozen=True):
    """The text with its references replaced, and the values that came in through them.

    Values of HARMLESS variables and of places are left out: they are no secrets, and masking them
    would make every path in every message unreadable.
    """

    text: str
    values: tuple[str, ...] = ()


HARMLESS: Final = frozenset(
    {"HOME", "USER", "LOGNAME", "PWD", "PATH", "TMPDIR", "SHELL", "LANG", "HOSTNAME"}
    | {"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"}
)
_TOKEN: Final = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_VARIABLE: Final = re.compile(r"^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$", re.DOTALL)


def has_reference(text: str) -> bool:
    """True where `expand` would change the text or refuse it."""
    return "${" in text


def expand(text: str, lookup: Lookup, *, folder: str, places: Mapping[str, str]) -> Expanded:
    """Replace each reference. Raises UnresolvedError naming the first one that has no value.

    `places` are names that only other people's files know (`workspaceFolder`).
    """
    values: list[str] = []

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        if match[1] is None:
            raise UnresolvedError("it holds `${` without its `}`; write `$${` for a literal `${`")
        value, harmless = _resolve(match[1], lookup, folder, places)
        if not harmless:
            values.append(value)
        return value

    return Expanded(_TOKEN.sub(replace, text), tuple(values))


def file_parts(
    text: str, lookup: Lookup, *, folder: str, places: Mapping[str, str]
) -> tuple[str, ...]:
    """Literal text and absolute paths in turn, beginning with text; () where no file is named.

    For values that are read again while a host runs. Everything but `${file:…}` is expanded, as
    `expand` does, which must have accepted the text.
    """
    parts: list[str] = [""]
    at = 0
    for match in _TOKEN.finditer(text):
        parts[-1] += text[at : match.start()]
        at = match.end()
        if match[1] is not None and match[1].startswith("file:"):
            parts += [absolute(match[1].removeprefix("file:"), lookup, folder=folder), ""]
        else:
            parts[-1] += expand(match[0], lookup, folder=folder, places=places).text
    parts[-1] += text[at:]
    return tuple(parts) if len(parts) > 1 else ()


def absolute(path: str, lookup: Lookup, *, folder: str) -> str:
    """A written path; `~` is the user's home, a relative one lies in `folder`."""
    if path == "~" or path.startswith("~/"):
        path = lookup.variables.get("HOME", "~") + path[1:]
    return str(PurePath(folder, path))


def _resolve(name: str, lookup: Lookup, folder: str, places: Mapping[str, str]) -> tuple[str, bool]:
    """The value, and whether showing it is harmless."""
    if name in places:
        return places[name], True
    if name.startswith("file:"):
        return lookup.read_file(name.removeprefix("file:"), folder).rstrip("\r\n"), False
    if name.startswith("input:"):
        raise UnresolvedError(
            f"`${{{name}}}` is asked by another client when it starts, which is not available "
            f"here; give the value through a variable, as `${{VAR}}`, in this server's own table"
        )
    match = _VARIABLE.match(name)
    if match is None:
        raise UnresolvedError(
            f"`${{{name[:40]}}}` is no reference known here; known are `${{VAR}}`, "
            "`${VAR:-default}` and `${file:PATH}`; write `$${` for a literal `${`"
        )
    variable, default = match[1], match[2]
    value = lookup.variables.get(variable)
    if default is not None:
        return value or default, not value or variable in HARMLESS
    if value is None:
        raise UnresolvedError(
            f"the variable {variable} is not set; set it, or give a default: "
            f"`${{{variable}:-default}}`"
        )
    return value, variable in HARMLESS
