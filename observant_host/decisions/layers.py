"""A large mapping that changes a little at a time: what changed lies over what stays.

A copy costs what lies on top and not the whole, which is why a layer that has grown thick is made
one with what is under it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final, TypeVar

V = TypeVar("V")

THICK: Final = 8
"""No more than an eighth of the whole lies on top: one change in a thousand copies ten thousand."""


def layered(below: Mapping[str, V]) -> Layered[V]:
    """A copy of `below`, which must not change any more. No value is None."""
    return below.copy() if isinstance(below, Layered) else Layered(below)


class Layered(MutableMapping[str, V]):
    """In `over`, None stands for what was taken out."""

    __slots__ = ("_over", "_under")

    def __init__(self, under: Mapping[str, V], over: dict[str, V | None] | None = None) -> None:
        self._under = under
        self._over = over or {}

    def copy(self) -> Layered[V]:
        if len(self._over) * THICK > len(self._under):
            return Layered(self.flat())
        return Layered(self._under, self._over.copy())

    def flat(self) -> dict[str, V]:
        """The same in one layer."""
        over = self._over
        found = dict(self._under)
        found.update((key, value) for key, value in over.items() if value is not None)
        for key in [key for key, value in over.items() if value is None]:
            found.pop(key, None)
        return found

    def __getitem__(self, key: str) -> V:
        value = self._over.get(key, self._under.get(key))
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        value = self._over.get(key, self._under.get(key))
        return default if value is None else value

    def __contains__(self, key: object) -> bool:
        return self._over[key] is not None if key in self._over else key in self._under

    def __setitem__(self, key: str, value: V) -> None:
        self._over[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._over[key] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self.flat())

    def __len__(self) -> int:
        return len(self.flat())
