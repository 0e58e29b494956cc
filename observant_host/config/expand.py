"""`${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:PATH}` in values; `$${` is a literal `${`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec


class UnresolvedError(Exception):
    """A reference that has no value here; `str()` names it and the fix."""


class Lookup(msgspec.Struct, frozen=True):
    """Where references get their values.

    `variables` is the environment; `places` are names that only other people's files know
    (`workspaceFolder`, `userHome`). `read_file(path, folder)` gives a file's text or raises
    UnresolvedError; `folder` is what a relative path is relative to.
    """

    variables: Mapping[str, str]
    read_file: Callable[[str, str], str]


class Expanded(msgspec.Struct, frozen=True):
    """The text with its references replaced, and the values that came in through them."""

    text: str
    values: tuple[str, ...] = ()


def expand(text: str, lookup: Lookup, *, folder: str, places: Mapping[str, str]) -> Expanded:
    """Replace each reference. Raises UnresolvedError naming the first one that has no value."""
    raise NotImplementedError
