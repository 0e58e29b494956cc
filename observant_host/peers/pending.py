"""Which request a reply belongs to: by (type, value) of its id, and by nothing weaker.

Pairing "1" or 1.0 with 1 would hand one caller another's answer the day a server uses both, so such
a reply is never paired. But it can be meant for nobody else, so the request it resembles is failed
at once instead of waiting for its deadline. Ids count upwards and are never used twice in a life,
which is what makes a late answer recognisable.

Source: MCP 2026-07-28 basic/index › Requests, Error Responses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Literal, Protocol, TypeVar

import msgspec

from observant_host.wire.jsonrpc import Broken, Error, Result, normalises_to

if TYPE_CHECKING:
    from collections.abc import Collection

W = TypeVar("W")

NOTICE_WINDOW_S: Final = 5.0
"""How long an error without an id may still be somebody's answer to a notification of ours."""

LISTEN: Final = "subscriptions/listen"
"""Its answer is the end of a stream, which may take days: it is no request that waits."""

MAX_FORGOTTEN: Final = 1024
"""Forgotten ids remembered, only to call their answers "late"; older ones count as duplicates."""

OrphanReason = Literal["late", "duplicate", "foreign", "no_id", "misdirected"]


W_co = TypeVar("W_co", covariant=True)


class Entry(Protocol[W_co]):
    """One open request. `expires` (monotonic seconds) may be moved while it is open."""

    id: int
    method: str
    expires: float

    @property
    def waiter(self) -> W_co: ...


class Waiting(Generic[W]):
    """The entry of a waiter that is none itself."""

    __slots__ = ("expires", "id", "method", "waiter")

    def __init__(self, request_id: int, method: str, *, expires: float, waiter: W) -> None:
        self.id = request_id
        self.method = method
        self.expires = expires
        self.waiter = waiter


class Matched(msgspec.Struct, Generic[W], frozen=True):
    """The reply of exactly this request."""

    entry: Entry[W]
    message: Result | Error


class FailOne(msgspec.Struct, Generic[W], frozen=True):
    """This request can get no proper reply any more; `problem` says why.

    `message` is what came: a recognised error code in it is still evidence.
    """

    entry: Entry[W]
    message: Result | Error | Broken
    problem: str


class Orphan(msgspec.Struct, frozen=True):
    """A reply to nobody: drop and count it.

    "late": its request timed out or was cancelled; "duplicate": it was answered before; "foreign":
    the id was never ours; "no_id": an error without an id that fits no one request; "misdirected":
    it came on the response to another request, which is no longer open.
    """

    reason: OrphanReason


class Pending(Generic[W]):
    """The open requests of one life. What looks at one of them is O(1)."""

    def __init__(self) -> None:
        self._open: dict[int, Entry[W]] = {}
        self._forgotten: dict[int, None] = {}
        self._last_id = 0
        self._notified_at: float | None = None
        self._notified_after_id = 0

    def __len__(self) -> int:
        return len(self._open)

    def next_id(self) -> int:
        """A new id: 1, 2, 3, … never given twice."""
        self._last_id += 1
        return self._last_id

    def open(self, request_id: int, method: str, *, expires: float, waiter: W) -> Entry[W]:
        """Register a request under an id from `next_id` before its frame is handed over.

        `expires` is in monotonic seconds; `math.inf` where somebody else watches the time.
        """
        entry = Waiting(request_id, method, expires=expires, waiter=waiter)
        self._open[request_id] = entry
        return entry

    def add(self, entry: Entry[W]) -> None:
        """As `open`, of what is its own entry."""
        self._open[entry.id] = entry

    def get(self, request_id: int) -> Entry[W] | None:
        """The open request with this id (or progress token, which is the same number)."""
        return self._open.get(request_id)

    def entries(self) -> tuple[Entry[W], ...]:
        return tuple(self._open.values())

    def answered(self, request_id: int) -> Entry[W] | None:
        """A reply under exactly this id has come: the request, which is no longer open."""
        entry = self._open.pop(request_id, None)
        if self._notified_at is not None and entry and request_id > self._notified_after_id:
            self._notified_at = None  # the server has read past our notification
        return entry

    def match(
        self, message: Result | Error | Broken, *, now: float, answers: int | None = None
    ) -> Matched[W] | FailOne[W] | Orphan:
        """Find the request of a reply; a request that is found is no longer open.

        `answers` is the request on whose HTTP response the reply came: it can be meant for no
        other, so one under another id fails that request, and one without an id belongs to it.
        """
        request_id = message.id
        if answers is not None and not (type(request_id) is int and request_id == answers):
            return self._match_on_response(message, answers)
        if type(request_id) is int:
            entry = self.answered(request_id)
            if entry is None:
                return self._orphan(request_id)
            if isinstance(message, Broken):
                return FailOne(entry, message, message.problem)
            return Matched(entry, message)
        return self._match_loosely(message, now)

    def notified(self, now: float) -> None:
        """A notification was just sent: for a while an error without an id may be its answer.

        That while ends with the reply to any request opened later, at the latest after
        `NOTICE_WINDOW_S`.
        """
        self._notified_at = now
        self._notified_after_id = self._last_id

    def forget(self, request_id: int) -> Entry[W] | None:
        """Its caller waits no more (timeout, cancellation): a later answer is an orphan, "late"."""
        entry = self._open.pop(request_id, None)
        if entry is not None:
            if len(self._forgotten) >= MAX_FORGOTTEN:
                del self._forgotten[next(iter(self._forgotten))]
            self._forgotten[request_id] = None
        return entry

    def due(self, now: float) -> list[Entry[W]]:
        """Forget and return the requests whose time is over."""
        over = [entry for entry in self._open.values() if entry.expires <= now]
        for entry in over:
            self.forget(entry.id)
        return over

    def open_of(self, methods: Collection[str]) -> list[Entry[W]]:
        """The open requests of these methods, the oldest first."""
        return [entry for entry in self._open.values() if entry.method in methods]

    def earliest(self) -> float | None:
        """When the next request expires, in monotonic seconds; None where none is open."""
        return min((entry.expires for entry in self._open.values()), default=None)

    def close(self) -> list[Entry[W]]:
        """The life is over: hand out all that is open."""
        entries = list(self._open.values())
        self._open.clear()
        return entries

    def _orphan(self, request_id: int) -> Orphan:
        if request_id in self._forgotten:
            del self._forgotten[request_id]
            return Orphan("late")
        return Orphan("duplicate" if 0 < request_id <= self._last_id else "foreign")

    def _match_loosely(self, message: Result | Error | Broken, now: float) -> FailOne[W] | Orphan:
        if message.id is None:
            return self._match_without_id(message, now)
        number = normalises_to(message.id)
        entry = None if number is None else self._open.pop(number, None)
        if entry is None:
            return Orphan("foreign")
        return FailOne(entry, message, _other_id(message, entry.id))

    def _match_on_response(
        self, message: Result | Error | Broken, answers: int
    ) -> FailOne[W] | Orphan:
        entry = self._open.pop(answers, None)
        if entry is None:
            return Orphan("misdirected")
        nameless = message.id is None and _is_error(message)
        return FailOne(entry, message, _NAMELESS if nameless else _other_id(message, answers))

    def _match_without_id(
        self, message: Result | Error | Broken, now: float
    ) -> FailOne[W] | Orphan:
        answered_soon = [entry for entry in self._open.values() if entry.method != LISTEN]
        if not _is_error(message) or len(answered_soon) != 1 or self._just_notified(now):
            return Orphan("no_id")
        entry = self._open.pop(answered_soon[0].id)
        return FailOne(entry, message, _NAMELESS)

    def _just_notified(self, now: float) -> bool:
        return self._notified_at is not None and now - self._notified_at < NOTICE_WINDOW_S


_NAMELESS: Final = "the server answered with an error that names no request"


def _is_error(message: Result | Error | Broken) -> bool:
    return isinstance(message, Error) or (isinstance(message, Broken) and message.code is not None)


def _other_id(message: Result | Error | Broken, sent: int) -> str:
    shown = repr(message.id)[:64]  # a server's id can be anything
    return f"the reply's id is {shown}, which is not the number {sent} that was sent"
