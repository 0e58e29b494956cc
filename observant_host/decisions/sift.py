"""Entries of a list, one by one: each bad one loses only itself.

Source: MCP 2026-07-28 server/tools › Tool Names (names outside the recommended characters are not
rejected), basic/index › JSON Schema Usage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Raw

from observant_host.config import ToolFilter
from observant_host.decisions.catalogue import (
    Excluded,
    ListedPrompt,
    ListedResource,
    ListedTool,
)

MAX_NAME_CHARS: Final = 1024
"""The specification recommends 128; a name far beyond it is no name but a payload in every list."""

SchemaProblem = Callable[[Raw | None], str | None]
"""`schema_check.input_schema_problem`: the tool's inputSchema (None: absent) to a sentence."""


class SiftedTools(msgspec.Struct, frozen=True):
    kept: tuple[ListedTool, ...]
    excluded: tuple[Excluded, ...]


class SiftedPrompts(msgspec.Struct, frozen=True):
    kept: tuple[ListedPrompt, ...]
    excluded: tuple[Excluded, ...]


class SiftedResources(msgspec.Struct, frozen=True):
    kept: tuple[ListedResource, ...]
    excluded: tuple[Excluded, ...]


def sift_tools(
    server: str, items: Iterable[Raw], *, tool_filter: ToolFilter, schema_problem: SchemaProblem
) -> SiftedTools:
    """All pages' `tools` entries, in order. The first of two entries of one name is kept."""
    raise NotImplementedError


def sift_prompts(server: str, items: Iterable[Raw]) -> SiftedPrompts:
    raise NotImplementedError


def sift_resources(
    server: str, items: Iterable[Raw], *, templates: bool = False
) -> SiftedResources:
    """`resources` entries by `uri`, or with `templates` resourceTemplates by `uriTemplate`."""
    raise NotImplementedError
