"""What a person's act on one server comes to, as one table: where the server stands, and the act.

An act that changes nothing is no error (a script may say it twice); one that makes no sense where
the server stands is refused with the act that does.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from observant_host.decisions.terms import PeerState

if TYPE_CHECKING:
    from collections.abc import Mapping


class Act(StrEnum):
    PROBE = "probe"
    RETRY = "retry"
    RESTART = "restart"
    HOLD = "hold"
    DISABLE = "disable"
    DRAIN = "drain"
    ENABLE = "enable"


class Place(StrEnum):
    """Where a server stands, as far as acts care."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    WAITING = "waiting"  # for its next try: backoff, or unavailable
    MISCONFIGURED = "misconfigured"
    SWITCHED_OFF = "switched_off"  # by a person, at run time
    DISABLED = "disabled"  # by the configuration
    STOPPED = "stopped"


class Step(StrEnum):
    """What the supervisor does."""

    NOTHING = "nothing"
    TRY = "try"  # a round now, lists anew where an era stands; the backoff is forgotten
    END_LIFE = "end_life"  # a life that serves is condemned, the next one begins at once
    BEGIN_AFRESH = "begin_afresh"  # whatever there is of a life is ended, the next one begins
    RULE = "rule"  # the ruling stands from now on
    LIFT = "lift"  # a ruling ends; nothing else happens by that
    BEGIN = "begin"  # a ruling ends, and the server is started
    REFUSE = "refuse"


RULINGS: Final = frozenset({Act.HOLD, Act.DISABLE, Act.DRAIN})
"""Acts that go on standing: until a time, or until they are lifted."""
LIFTING: Final = frozenset({Act.RETRY, Act.ENABLE})

RulingAct = Literal["hold", "disable", "drain"]


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """A person's act that stands. `until` and `time` are epoch seconds; `until` None: until another
    act lifts it."""

    act: RulingAct
    until: float | None = None
    principal: str = ""
    reason: str = ""
    time: float = 0.0


_WORDS: Final[Mapping[RulingAct, str]] = {
    "hold": "held",
    "disable": "disabled",
    "drain": "drained",
}


def is_off(ruling: Ruling | None) -> bool:
    """Whether it keeps the server from running."""
    return ruling is not None and ruling.act != "hold"


def is_over(ruling: Ruling, now_s: float) -> bool:
    return ruling.until is not None and now_s >= ruling.until


def sentence(ruling: Ruling) -> str:
    """E.g. "disabled by alice until 2026-12-01T08:00:00Z: moved to another machine"."""
    until = f" until {_moment(ruling.until)}" if ruling.until is not None else ""
    reason = f": {ruling.reason}" if ruling.reason else ""
    return f"{_WORDS[ruling.act]} by {ruling.principal or 'somebody'}{until}{reason}"


LAST_S: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The last day that can be written; a time that is over later stands for ever."""


def _moment(epoch_s: float) -> str:
    return f"{datetime.fromtimestamp(int(min(epoch_s, LAST_S)), UTC):%Y-%m-%dT%H:%M:%SZ}"


def place(state: PeerState, *, enabled: bool, configured: bool, ruling: Ruling | None) -> Place:
    """`enabled` and `configured` are the configuration's word: wanted, and usable."""
    if state is PeerState.STOPPED:
        return Place.STOPPED
    if not enabled:
        return Place.DISABLED
    if is_off(ruling) or state is PeerState.DISABLED:
        return Place.SWITCHED_OFF
    if not configured:
        return Place.MISCONFIGURED
    return _RUNNING[state]


_RUNNING: Final[Mapping[PeerState, Place]] = {
    PeerState.STARTING: Place.STARTING,
    PeerState.READY: Place.READY,
    PeerState.DEGRADED: Place.DEGRADED,
    PeerState.BACKOFF: Place.WAITING,
    PeerState.UNAVAILABLE: Place.WAITING,
}


def _row(
    *, probe: Step, retry: Step, restart: Step, rule: Step = Step.RULE, enable: Step = Step.LIFT
) -> dict[Act, Step]:
    return {
        Act.PROBE: probe,
        Act.RETRY: retry,
        Act.RESTART: restart,
        Act.HOLD: rule,
        Act.DISABLE: rule,
        Act.DRAIN: rule,
        Act.ENABLE: enable,
    }


_NO: Final = Step.REFUSE

STEPS: Final[Mapping[Place, Mapping[Act, Step]]] = {
    # what a try would begin is under way
    Place.STARTING: _row(probe=Step.TRY, retry=Step.LIFT, restart=Step.BEGIN_AFRESH),
    Place.READY: _row(probe=Step.TRY, retry=Step.LIFT, restart=Step.END_LIFE),
    Place.DEGRADED: _row(probe=Step.TRY, retry=Step.TRY, restart=Step.END_LIFE),
    Place.WAITING: _row(probe=Step.TRY, retry=Step.TRY, restart=Step.BEGIN_AFRESH),
    # a probe is a look, and the answer is where it stands
    Place.MISCONFIGURED: _row(probe=Step.NOTHING, retry=_NO, restart=_NO),
    # it may be switched off in another way, for another time, but there is nothing to hold
    Place.SWITCHED_OFF: {
        **_row(probe=Step.NOTHING, retry=_NO, restart=_NO, enable=Step.BEGIN),
        Act.HOLD: _NO,
    },
    Place.DISABLED: _row(probe=Step.NOTHING, retry=_NO, restart=_NO, rule=_NO, enable=_NO),
    Place.STOPPED: _row(probe=_NO, retry=_NO, restart=_NO, rule=_NO, enable=_NO),
}

_REFUSALS: Final[Mapping[Place, str]] = {
    Place.MISCONFIGURED: (
        "{act} cannot help {server}: its configuration cannot be used ({detail}); change it, then "
        "reload or restart the host"
    ),
    Place.SWITCHED_OFF: (
        "{server} does not run ({detail}), so there is nothing to {act}; "
        "`observant-host enable {server}` starts it"
    ),
    Place.DISABLED: (
        "{server} is disabled by the configuration, which {act} does not overrule: set "
        "enabled = true in [servers.{server}], then reload or restart the host"
    ),
    Place.STOPPED: "{server} is stopped, since its host is ending or it was removed",
}


def decide(where: Place, act: Act) -> Step:
    return STEPS[where][act]


def refusal(where: Place, act: Act, *, server: str, detail: str) -> str:
    """The sentence for a person where `decide` says REFUSE."""
    return _REFUSALS[where].format(act=act.value, server=server, detail=detail)


def time_problem(act: Act, until: float | None, *, now_s: float) -> str | None:
    """What is wrong with the time that somebody gave, None where nothing is."""
    if until is None:
        return None
    if act not in RULINGS:
        return f"{act} happens once and takes no time; hold, disable and drain take one"
    if not until > now_s:
        return "the time until which that should stand is over already"
    return None
