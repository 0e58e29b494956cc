"""A bounded line that is fair between those who stand in it: one lane for each, in turn.

Within a lane the first comes first. Who fills the whole line loses its newest place to somebody
who has fewer, so that one busy principal costs the others their turn neither at the front nor at
the back of the line.

Source: McKenney, Stochastic Fairness Queueing, 1990 (round robin; the longest lane gives way).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

K = TypeVar("K")
T = TypeVar("T")


class Lanes(Generic[K, T]):
    """Items are hashable, and stand in line once; `length` is how many do. A lane exists while
    somebody stands in it, so there are never more lanes than places taken."""

    def __init__(self) -> None:
        self._lanes: dict[K, OrderedDict[T, None]] = {}
        self._turns: deque[K] = deque()
        self.length = 0

    def __iter__(self) -> Iterator[T]:
        """Everybody, in no particular order."""
        return chain.from_iterable(self._lanes.values())

    def add(self, key: K, item: T) -> None:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = OrderedDict()
            self._turns.append(key)
        lane[item] = None
        self.length += 1

    def pop(self) -> T:
        """The first of the lane whose turn it is. IndexError where nobody stands in line."""
        turns = self._turns
        key = turns[0]
        lane = self._lanes[key]
        item, _ = lane.popitem(last=False)
        self.length -= 1
        if lane:
            turns.rotate(-1)  # the others have their turn first
        else:
            self._close(key)
        return item

    def remove(self, key: K, item: T) -> None:
        """It waits no more; nothing happens where it stands in line no longer."""
        lane = self._lanes.get(key)
        if lane is not None and item in lane:
            self._take_out(key, lane, item)

    def make_way(self, key: K) -> T | None:
        """Take the newest out of the longest lane, where that leaves it no shorter than this one
        becomes; None where it would."""
        longest, lane = max(self._lanes.items(), key=lambda each: len(each[1]))
        own = self._lanes.get(key, ())
        if len(lane) <= len(own) + 1:
            return None
        newest = next(reversed(lane))
        self._take_out(longest, lane, newest)
        return newest

    def clear(self) -> list[T]:
        """Everybody, in the order of their turns; the line is empty then."""
        return [self.pop() for _ in range(self.length)]

    def _take_out(self, key: K, lane: OrderedDict[T, None], item: T) -> None:
        del lane[item]
        self.length -= 1
        if not lane:
            self._close(key)

    def _close(self, key: K) -> None:
        del self._lanes[key]
        self._turns.remove(key)
