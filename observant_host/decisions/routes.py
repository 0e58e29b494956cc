"""Where a name leads, or why it leads nowhere: a lookup first, an explanation only on a miss."""

from __future__ import annotations

import msgspec

from observant_host.decisions.catalogue import (
    Catalogue,
    Excluded,
    PromptEntry,
    ResourceEntry,
    ToolEntry,
)


class NotListed(msgspec.Struct, frozen=True):
    """The name belongs to `server`, which has not listed it in this run."""

    name: str
    server: str


class Released(msgspec.Struct, frozen=True):
    """Its owner gave the bare name up; until the grace ends it is nobody's. `instead` are the
    qualified names of those that list it."""

    name: str
    owner: str
    instead: tuple[str, ...]


class Withheld(msgspec.Struct, frozen=True):
    """Listed by its server, but not offered."""

    name: str
    excluded: Excluded


class Unknown(msgspec.Struct, frozen=True):
    """`close` are names that were perhaps meant, nearest first."""

    name: str
    close: tuple[str, ...]


NoRoute = NotListed | Released | Withheld | Unknown


def find_tool(catalogue: Catalogue, name: str) -> ToolEntry | NoRoute:
    """By canonical, api or qualified name."""
    raise NotImplementedError


def find_prompt(catalogue: Catalogue, name: str) -> PromptEntry | NoRoute:
    raise NotImplementedError


def find_resource(catalogue: Catalogue, uri: str) -> ResourceEntry | Unknown:
    """The owner of a URI: who lists it, else the first whose template it fits."""
    raise NotImplementedError
