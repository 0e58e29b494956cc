"""Moments put in order by host and server, so that each incident looks only at its own."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from observant_host.incidents.episodes import QUIET_NS, Episode, episodes
from observant_host.incidents.moments import Lost, Moment, Stalled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_at: Final = attrgetter("at_ns")
_start: Final = attrgetter("start_ns")


class Timeline:
    """Everything that was read. Times are nanoseconds since the epoch."""

    def __init__(self, moments: Iterable[Moment]) -> None:
        self._of: defaultdict[tuple[str, str], list[Moment]] = defaultdict(list)
        self._hosts: defaultdict[str, set[str]] = defaultdict(set)
        self._peers: defaultdict[str, set[str]] = defaultdict(set)
        self._fallen: defaultdict[str, list[Episode]] = defaultdict(list)
        ordered = sorted(moments, key=_at)
        for one in ordered:
            self._of[one.host, one.peer].append(one)
            if one.peer:
                self._hosts[one.peer].add(one.host)
                self._peers[one.host].add(one.peer)
        self.episodes = episodes(ordered)
        for episode in self.episodes:
            self._fallen[episode.host].append(episode)

    @property
    def hosts(self) -> set[str]:
        """Every host that told anything."""
        return {host for host, _ in self._of}

    def hosts_of(self, peer: str) -> set[str]:
        return self._hosts[peer]

    def peers_of(self, host: str) -> set[str]:
        return self._peers[host]

    def about(self, host: str, peer: str, *, until_ns: int) -> list[Moment]:
        """What concerned this server on this host, or the host itself, up to then, in order."""
        found = [*_until(self._of[host, ""], until_ns), *_until(self._of[host, peer], until_ns)]
        return sorted(found, key=_at)

    def longest_stall_ms(self, host: str, *, since_ns: int, until_ns: int) -> float:
        own = _until(self._of[host, ""], until_ns)
        near = own[bisect_left(own, since_ns, key=_at) :]
        return max((one.lag_ms for one in near if isinstance(one, Stalled)), default=0.0)

    def losses(self, host: str) -> list[Lost]:
        """What this host says that it lost; empty where it does not say such things."""
        return [one for one in self._of[host, ""] if isinstance(one, Lost)]

    def fell_with(self, first: Episode) -> tuple[str, ...]:
        """Other servers of its host that had worked and fell in the same minutes."""
        if not first.was_up:
            return ()
        own = self._fallen[first.host]
        low = bisect_left(own, first.start_ns - QUIET_NS, key=_start)
        high = bisect_right(own, first.start_ns + QUIET_NS, key=_start)
        return tuple(
            sorted({one.peer for one in own[low:high] if one.peer != first.peer and one.was_up})
        )


def _until(moments: Sequence[Moment], until_ns: int) -> Sequence[Moment]:
    return moments[: bisect_right(moments, until_ns, key=_at)]
