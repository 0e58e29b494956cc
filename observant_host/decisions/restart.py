"""What follows the end of a life: why it counts as a restart, after which delay, or never.

Transient and fatal are told apart in one place (`heals`).

Only sustained uptime resets the backoff: a server that answers once and dies again would otherwise
be restarted at full speed for ever.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from observant_host.decisions import backoff
from observant_host.decisions.terms import OUTAGES, Cause, PeerState, RestartReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import RestartPolicy

EndedHow = Literal["exit", "eof", "closed", "lost", "spawn_failed"]
"""The kinds of `transports.base.End`, and a life that never began."""

IMMEDIATE: Final = frozenset({RestartReason.OPERATOR, RestartReason.RELOAD})
"""A person asked: no delay, and the failures before it are forgotten."""

FATAL_SPAWN_ERRORS: Final = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EACCES,
        errno.EPERM,
        errno.ENOEXEC,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.E2BIG,
        errno.EINVAL,
    }
)
"""A start that failed with one of these fails again until a person changes something.

Short memory, processes or descriptors (ENOMEM, EAGAIN, EMFILE, ENFILE, ETXTBSY) heal by themselves.
"""


FOR_A_PERSON: Final = frozenset({Cause.AUTH, Cause.CONFIG})
"""Causes that time does not heal: the next try would be refused in the same way, and a login that
is wrong again and again gets locked."""

_REASONS: Final[Mapping[EndedHow, RestartReason]] = {
    "exit": RestartReason.EXIT,
    "spawn_failed": RestartReason.EXIT,
    "closed": RestartReason.OPERATOR,
    "eof": RestartReason.CONNECTION_LOST,
    "lost": RestartReason.CONNECTION_LOST,
}


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How one life ended.

    `exit_code` is negative for a signal. `ended_by_us` is the host's own reason where it ended the
    life itself. `spawn_errno` is set where the child could not be started. `uptime_s` is 0 for a
    life that never had an era.
    """

    how: EndedHow
    exit_code: int | None = None
    uptime_s: float = 0.0
    ended_by_us: RestartReason | None = None
    spawn_errno: int | None = None


class Restart(msgspec.Struct, frozen=True):
    """`attempts` is the number of restarts in a row without sustained uptime, this one included.

    With `gave_up` there is no next life until a person acts; `delay_s` is then 0.
    """

    reason: RestartReason
    delay_s: float
    attempts: int
    gave_up: bool = False


def reason_of(ended: Ended) -> RestartReason:
    """The host's own reason first; else what the process or connection showed."""
    if ended.ended_by_us is not None:
        return ended.ended_by_us
    if ended.exit_code is not None and ended.exit_code < 0:
        return RestartReason.SIGNAL
    return _REASONS[ended.how]


def heals(cause: Cause, *, spawn_errno: int | None = None) -> bool:
    """Whether what went wrong may be over by itself at the next try. Otherwise there is none until
    a person changes the configuration or says `retry`.

    `spawn_errno` is set where a child could not be started, e.g. since its command is missing.
    """
    return cause not in FOR_A_PERSON and spawn_errno not in FATAL_SPAWN_ERRORS


def may_wake(state: PeerState, cause: Cause | None) -> bool:
    """Whether a call that wants the server may begin its next try before its time: only where it
    is down by an outage, never where a person decided or has to."""
    if state is PeerState.UNAVAILABLE:
        return cause in OUTAGES
    return state in (PeerState.BACKOFF, PeerState.STARTING)


def after(ended: Ended, *, policy: RestartPolicy, attempts: int, random_0_1: float) -> Restart:
    """What follows `ended`. `attempts` is the `Restart.attempts` before it (0 at first).

    Pass the attempts on: they grow by one with each end, and fall back to one where the ended life
    was up for `policy.healthy_after_s` or longer.
    """
    reason = reason_of(ended)
    if not heals(Cause.PROCESS, spawn_errno=ended.spawn_errno):
        return Restart(reason, 0.0, attempts + 1, gave_up=True)
    if reason in IMMEDIATE:
        return Restart(reason, 0.0, 0)
    count = 1 if ended.uptime_s >= policy.healthy_after_s else attempts + 1
    wait = backoff.delay(
        count,
        initial_s=policy.restart_initial_s,
        maximum_s=policy.restart_max_s,
        random_0_1=random_0_1,
    )
    return Restart(reason, wait, count)
