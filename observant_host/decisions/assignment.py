"""Who owns which bare name. Pure: the same servers, grants and time give the same names.

A grant sticks to its owner while the owner lists the name, up or down, so that a restart of the
host or the return of a slow server never re-points a name that somebody already uses. A name
changes its owner only after the owner gave it up and the grace has passed, and then as a decision.

An assignment goes on from the one before: it looks at the servers whose claims are others now, at
the grants that nobody serves, and at the names that these free. Without one before, every server
is one that changed. Both give the same names; a test walks random histories both ways.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, MutableMapping, Sequence
from itertools import chain, compress
from operator import is_not
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.config import CollisionPolicy
from observant_host.decisions.layers import layered
from observant_host.decisions.names import (
    SEPARATOR,
    Claim,
    Grant,
    NameChange,
    in_grace,
    is_reserved,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOBODY: Final[tuple[str, ...]] = ()


class Assigned(msgspec.Struct, frozen=True):
    """`granted` is the memory for the next assignment. `listers` are the servers (two or more,
    config order) that list one and the same name which may be granted bare.
    `wake_at`: time alone changes something then (epoch seconds). `idle` are granted names that
    nobody serves now: their owner does not list them, or gave them up and the grace runs.

    The rest is what the next assignment goes on from: `all_listers` of every name, how many servers
    from the first on were `ready` to be granted names, the `places` of all, and, where it `goes_on`
    from the assignment before, what changed: the names in `touched` have another owner or other
    listers, the servers in `affected` list one that has another owner, or claim otherwise.
    """

    granted: Mapping[str, Grant]
    listers: Mapping[str, tuple[str, ...]]
    changes: tuple[NameChange, ...]
    wake_at: float | None
    idle: Mapping[str, Grant]
    policy: CollisionPolicy
    claims: tuple[Claim, ...]
    all_listers: Mapping[str, tuple[str, ...]]
    ready: int
    places: Mapping[str, int]
    touched: frozenset[str] = frozenset()
    affected: frozenset[str] = frozenset()
    goes_on: bool = False

    def owner(self, name: str) -> str | None:
        """Of a name that resolves bare now."""
        grant = self.granted.get(name)
        held = grant is not None and grant.given_up_at is None and self.policy != "qualified"
        return grant.owner if held and grant is not None else None

    @property
    def owners(self) -> dict[str, str]:
        """Every name that resolves bare now."""
        found = ((name, self.owner(name)) for name in self.granted)
        return {name: owner for name, owner in found if owner is not None}


def assign(
    claims: Sequence[Claim],
    *,
    policy: CollisionPolicy,
    granted: Mapping[str, Grant],
    now_s: float,
    startup_over: bool,
    grace_s: float,
    before: Assigned | None = None,
) -> Assigned:
    """Names for one kind of entry. `claims` are in config order; `now_s` is epoch seconds.

    With the policy "qualified" nothing is granted and the grants rest as they are. "reject" and
    "prefix" assign alike; what becomes of the others is the caller's. `before` is gone on from
    where `granted` is its own and the servers are the same.
    """
    goes_on = before is not None and _follows(before, claims, granted, policy)
    start = before if before is not None and goes_on else _nothing(claims, granted, policy)
    ready = _ready(claims, startup_over=startup_over)
    step = _Step(start, tuple(claims), now_s=now_s, grace_s=grace_s, afresh=not goes_on)
    if goes_on and not step.moved and start.ready == ready and not start.idle:
        return _unchanged(start)
    step.relist()
    if policy != "qualified":
        step.review()
        step.grant(ready)
    return step.assigned(ready)


def _unchanged(start: Assigned) -> Assigned:
    """Everybody claims what they claimed, and no time runs."""
    nothing: frozenset[str] = frozenset()
    same: Assigned = msgspec.structs.replace(
        start, changes=(), touched=nothing, affected=nothing, goes_on=True
    )
    return same


def _follows(
    before: Assigned, claims: Sequence[Claim], granted: Mapping[str, Grant], policy: CollisionPolicy
) -> bool:
    return (
        before.granted is granted
        and before.policy == policy
        and len(before.claims) == len(claims)
        and all(old.server == new.server for old, new in _others(before.claims, claims))
    )


def _others(old: Sequence[Claim], new: Sequence[Claim]) -> list[tuple[Claim, Claim]]:
    return list(compress(zip(old, new, strict=True), map(is_not, old, new)))


def _nothing(
    claims: Sequence[Claim], granted: Mapping[str, Grant], policy: CollisionPolicy
) -> Assigned:
    """Before any server claimed anything."""
    servers = frozenset(claim.server for claim in claims)
    # with the policy "qualified" an entry is served under what reads like a qualified name
    spelled = policy == "qualified"
    idle = {n: g for n, g in granted.items() if not (spelled and is_reserved(n, servers))}
    return Assigned(
        granted=granted,
        listers={},
        changes=(),
        wake_at=None,
        idle=idle,
        policy=policy,
        claims=tuple(Claim(claim.server, False, False, None) for claim in claims),
        all_listers={},
        ready=0,
        places={claim.server: at for at, claim in enumerate(claims)},
    )


def _ready(claims: Sequence[Claim], *, startup_over: bool) -> int:
    """So many servers, from the first on, may be granted names: every enabled one before them is
    settled."""
    if not startup_over:
        for number, claim in enumerate(claims, start=1):
            if claim.enabled and not claim.settled:
                return number
    return len(claims)


class _Step:
    """From one assignment to the next. `start`'s own mappings are never changed."""

    def __init__(
        self,
        start: Assigned,
        claims: tuple[Claim, ...],
        *,
        now_s: float,
        grace_s: float,
        afresh: bool,
    ) -> None:
        self.claims = claims
        self._start = start
        self._now = now_s
        self._grace = grace_s
        self._afresh = afresh
        self._position = start.places
        self.moved = [(old, new) for old, new in _others(start.claims, claims) if old != new]
        copied = dict if afresh else layered
        self._granted: MutableMapping[str, Grant] = copied(start.granted)
        self._listers: MutableMapping[str, tuple[str, ...]] = copied(start.all_listers)
        self._relisted: set[str] = set()
        self._regranted: set[str] = set()
        self._unsettled: set[str] = set()
        self._reviewed: list[NameChange] = []
        self._fresh: list[NameChange] = []
        self._ended: dict[str, str] = {}
        self._gone: dict[str, set[str]] = {}

    def relist(self) -> None:
        """Bring up to date who lists what."""
        for old, new in self.moved:
            if old.shown != new.shown:
                self._relist(new.server, set(old.shown), set(new.shown))

    def _relist(self, server: str, was: set[str], now: set[str]) -> None:
        listers = self._listers
        came, gone = now - was, was - now
        for name in gone:
            rest = tuple([other for other in listers[name] if other != server])
            if rest:
                listers[name] = rest
            else:
                del listers[name]
        met = {name: self._with(listers[name], server) for name in came if name in listers}
        listers.update(dict.fromkeys(came, (server,)))
        listers.update(met)
        self._gone[server] = gone
        self._relisted.update(gone, came)
        self._unsettled.update(gone, self._start.idle.keys() & now)

    def _with(self, servers: tuple[str, ...], server: str) -> tuple[str, ...]:
        place = self._position.__getitem__
        at = bisect(servers, place(server), key=place)
        return (*servers[:at], server, *servers[at:])

    def review(self) -> None:
        """Which grants stand, which are given up, and which have ended."""
        for name in self._doubtful():
            grant = self._granted[name]
            after = self._reviewed_grant(name, grant)
            if after is grant:
                continue
            self._regranted.add(name)
            self._unsettled.add(name)
            if after is None:
                del self._granted[name]
            else:
                self._granted[name] = after

    def _doubtful(self) -> Iterable[str]:
        """Grants of which something may have changed: of servers that claim otherwise, and those
        that wait for their grace to end."""
        if self._afresh:
            return tuple(self._granted)
        moved = {new.server for _, new in self.moved}
        idle = self._start.idle.items()
        found = [n for n, g in idle if g.given_up_at is not None or g.owner in moved]
        for server, gone in self._gone.items():
            found += [n for n in gone if self._start.owner(n) == server]
        return found

    def _reviewed_grant(self, name: str, grant: Grant) -> Grant | None:
        if is_reserved(name, self._position):
            self._give_up(name, grant, "reserved")
            return None
        if self._is_over(grant):
            self._ended[name] = grant.owner
            return None
        if grant.owner in self._listers.get(name, _NOBODY):
            return self._keep(name, grant)
        return self._hold(name, grant)

    def _give_up(self, name: str, grant: Grant, reason: str) -> None:
        self._reviewed.append(NameChange("given_up", name, grant.owner, reason))

    def _is_over(self, grant: Grant) -> bool:
        given_up = grant.given_up_at is not None
        return given_up and not in_grace(grant, now_s=self._now, grace_s=self._grace)

    def _keep(self, name: str, grant: Grant) -> Grant:
        if grant.given_up_at is None:
            return grant
        self._reviewed.append(NameChange("kept", name, grant.owner, "taken_back"))
        return Grant(grant.owner)

    def _hold(self, name: str, grant: Grant) -> Grant | None:
        """Not listed now: given up by a word of the owner or of a person, held otherwise."""
        if grant.given_up_at is not None:
            in_past = grant.given_up_at <= self._now
            return grant if in_past else Grant(grant.owner, self._now)
        reason = self._why_gone(grant.owner)
        if reason is None:
            return grant
        self._give_up(name, grant, reason)
        given_up = Grant(grant.owner, self._now)
        if not self._is_over(given_up):
            return given_up
        self._ended[name] = grant.owner
        return None

    def _why_gone(self, owner: str) -> str | None:
        position = self._position.get(owner)
        if position is None:
            return "left_config"
        claim = self.claims[position]
        if not claim.enabled:
            return "disabled"
        return "not_listed" if claim.names is not None and claim.complete else None

    def grant(self, ready: int) -> None:
        """Free names, each to the first in config order, once nobody before it can still come."""
        granted, listers, servers = self._granted, self._listers, self._position
        for server, listed in self._may_be_first(ready):
            free = [
                name
                for name in listed
                if name not in granted
                and listers[name][0] == server
                and not (SEPARATOR in name and is_reserved(name, servers))
            ]
            granted.update(dict.fromkeys(free, Grant(server)))
            self._regranted.update(free)
            self._fresh += [
                NameChange("granted", name, server, "first_in_order")
                if (former := self._ended.get(name, server)) == server
                else NameChange("moved", name, server, f"from {former}")
                for name in free
            ]

    def _may_be_first(self, ready: int) -> Iterable[tuple[str, Sequence[str]]]:
        """Servers in config order, each with those of its names that it may be granted now and
        could not be before."""
        if self._afresh:
            return [(claim.server, claim.shown) for claim in self.claims[:ready]]
        changed, before = self._relisted | self._regranted, self._start.ready
        listers = [self._listers.get(name) for name in changed]
        first = {servers[0] for servers in listers if servers}
        places = {*map(self._position.__getitem__, first), *range(before, ready)}
        claims = [(at, self.claims[at]) for at in sorted(places) if at < ready]
        return [
            (claim.server, [n for n in claim.shown if n in changed] if at < before else claim.shown)
            for at, claim in claims
        ]

    def assigned(self, ready: int) -> Assigned:
        """What has become of it; mappings in which nothing changed are those of before."""
        start, policy = self._start, self._start.policy
        idle = self._idle() if self._unsettled and policy != "qualified" else start.idle
        return Assigned(
            granted=self._granted if self._regranted else start.granted,
            listers=self._shared(),
            changes=(*sorted(self._reviewed, key=lambda change: change.name), *self._fresh),
            wake_at=None if policy == "qualified" else _wake_at(idle, self._grace),
            idle=idle,
            policy=policy,
            claims=self.claims,
            all_listers=self._listers,
            ready=ready,
            places=start.places,
            touched=frozenset() if self._afresh else frozenset(self._relisted | self._regranted),
            affected=self._affected(),
            goes_on=not self._afresh,
        )

    def _affected(self) -> frozenset[str]:
        if self._afresh:
            return frozenset(self._position)
        listers = (self._listers.get(name, _NOBODY) for name in self._regranted)
        return frozenset(chain(*listers, [new.server for _, new in self.moved]))

    def _idle(self) -> dict[str, Grant]:
        idle = dict(self._start.idle)
        for name in self._unsettled:
            grant = self._granted.get(name)
            if grant is None or (
                grant.given_up_at is None and grant.owner in self._listers.get(name, _NOBODY)
            ):
                idle.pop(name, None)
            else:
                idle[name] = grant
        return idle

    def _shared(self) -> Mapping[str, tuple[str, ...]]:
        """In the order of the first listing of each."""
        shared = self._start.listers
        others = {n for n in self._relisted if n in shared or len(self._listers.get(n, ())) > 1}
        if not others and not any(_reordered(old, new, shared) for old, new in self.moved):
            return shared
        wanted: dict[str, set[str]] = {}
        for name in chain(shared, others):
            listers = self._listers.get(name, ())
            if len(listers) > 1 and not is_reserved(name, self._position):
                wanted.setdefault(listers[0], set()).add(name)
        return {
            name: self._listers[name]
            for server in sorted(wanted, key=self._position.__getitem__)
            for name in self.claims[self._position[server]].shown
            if name in wanted[server]
        }


def _reordered(old: Claim, new: Claim, shared: Mapping[str, object]) -> bool:
    """Whether it lists names that others list too, now in another order."""
    return [name for name in old.shown if name in shared] != [
        name for name in new.shown if name in shared
    ]


def _wake_at(idle: Mapping[str, Grant], grace_s: float) -> float | None:
    ends = (g.given_up_at + grace_s for g in idle.values() if g.given_up_at is not None)
    return min(ends, default=None)
