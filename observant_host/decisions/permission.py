"""May this server be sent `initialize`? Permission from people and memory, never from the wire.

An allowance is for exactly one server and, where a fingerprint is given, exactly one way to start
it. What is remembered only refuses: a server once proven modern is not downgraded because it is
slow or broken today.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.era import Permission
from observant_host.wire import revisions

if TYPE_CHECKING:
    from observant_host.config import EraPolicy

DEFAULT_ALLOWANCE: Final = timedelta(days=180)
"""How long `allow NAME` holds: long enough for a migration, short enough to be looked at again."""


class CommandAllowance(msgspec.Struct, frozen=True):
    """An allowance that a person gave to the running host, for one fingerprint.

    `until` is epoch seconds.
    """

    fingerprint: str
    until: float


class Remembered(msgspec.Struct, frozen=True):
    """What memory knows of one server: was this fingerprint proven modern, was it allowed."""

    proven_modern: bool = False
    allowance: CommandAllowance | None = None


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The answer for one round.

    `revisions` are the legacy revisions that may be accepted; `expires` is when the allowance that
    grants them ends (epoch seconds, None: never). `unexpected` is set where legacy would be chosen
    against the memory (`remember_modern = false`).
    """

    permission: Permission
    proven: bool
    revisions: tuple[str, ...] = ()
    expires: float | None = None
    unexpected: bool = False


def end_of_day(day: date) -> float:
    """Epoch seconds of the end of that day, UTC: an allowance holds on its last day."""
    return datetime.combine(day + timedelta(days=1), time.min, tzinfo=UTC).timestamp()


def permission(
    policy: EraPolicy,
    fingerprint: str,
    *,
    remembered: Remembered,
    remember_modern: bool,
    now_s: float,
) -> Verdict:
    """`now_s` is epoch seconds. An allowance of the file and one given by command both count."""
    given = _best(
        _from_file(policy, fingerprint, now_s), _from_command(remembered, fingerprint, now_s)
    )
    expects_modern = policy.expect_era == "modern"
    proven = expects_modern or remembered.proven_modern
    if given is not Permission.GRANTED:
        return Verdict(permission=given, proven=proven)
    if expects_modern or (remembered.proven_modern and remember_modern):
        return Verdict(permission=Permission.REFUSED, proven=True)
    return Verdict(
        permission=Permission.GRANTED,
        proven=remembered.proven_modern,
        revisions=policy.allow_legacy or revisions.LEGACY,
        expires=_expires(policy, fingerprint, remembered=remembered, now_s=now_s),
        unexpected=remembered.proven_modern,
    )


_ORDER: Final = (
    Permission.GRANTED,
    Permission.MISMATCH,
    Permission.EXPIRED,
    Permission.NONE,
)
"""What is said where two sources disagree: a standing allowance wins, then the nearest miss."""


def _best(first: Permission, second: Permission) -> Permission:
    return min(first, second, key=_ORDER.index)


def _from_file(policy: EraPolicy, fingerprint: str, now_s: float) -> Permission:
    if not policy.allow_legacy:
        return Permission.NONE
    if policy.legacy_fingerprint is not None and policy.legacy_fingerprint != fingerprint:
        return Permission.MISMATCH
    if policy.legacy_expires is not None and now_s >= end_of_day(policy.legacy_expires):
        return Permission.EXPIRED
    return Permission.GRANTED


def _from_command(remembered: Remembered, fingerprint: str, now_s: float) -> Permission:
    allowance = remembered.allowance
    if allowance is None:
        return Permission.NONE
    if allowance.fingerprint != fingerprint:
        return Permission.MISMATCH
    return Permission.GRANTED if now_s < allowance.until else Permission.EXPIRED


def _expires(
    policy: EraPolicy, fingerprint: str, *, remembered: Remembered, now_s: float
) -> float | None:
    """The later of the standing allowances' ends: the peer runs until nothing allows it."""
    ends: list[float] = []
    if _from_file(policy, fingerprint, now_s) is Permission.GRANTED:
        if policy.legacy_expires is None:
            return None
        ends.append(end_of_day(policy.legacy_expires))
    allowance = remembered.allowance
    if allowance and _from_command(remembered, fingerprint, now_s) is Permission.GRANTED:
        ends.append(allowance.until)
    return max(ends)
