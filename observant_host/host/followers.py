"""Who wants to hear of something, as often as it happens: told on the loop, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Followers(Generic[T]):
    """They must neither block nor raise. `first` is one of them, for ever."""

    def __init__(self, first: Callable[[T], object] | None = None) -> None:
        self._told: set[Callable[[T], object]] = set() if first is None else {first}

    def add(self, told: Callable[[T], object]) -> Callable[[], None]:
        """Have `told` called from now on; returns what ends that."""
        self._told.add(told)
        return lambda: self._told.discard(told)

    def tell(self, news: T) -> None:
        for told in tuple(self._told):
            told(news)
