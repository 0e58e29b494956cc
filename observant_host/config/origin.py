"""Where a value came from, so that a person can find and change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

KeyPath = tuple[str, ...]
OriginKind = Literal["default", "defaults", "import", "file", "variable", "flag"]


class Origin(msgspec.Struct, frozen=True):
    """`where` is "FILE:LINE", "FILE", a variable's or a flag's name; "" for a default.

    `folder` is what relative paths in the value are relative to; `places` are the names that a
    foreign file may refer to (`workspaceFolder`).
    """

    kind: OriginKind
    where: str = ""
    folder: str = ""
    places: Mapping[str, str] = {}

    def __str__(self) -> str:
        return f"{self.kind} {self.where}" if self.where else self.kind


class Leaf(msgspec.Struct, frozen=True):
    """One raw value, before expansion, with its origin."""

    raw: Any
    origin: Origin


Leaves = Mapping[KeyPath, Leaf]
