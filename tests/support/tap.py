"""Taps every transport: what the host sends is judged by the protocol's published schemas."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from observant_host.transports.http.transport import HttpTransport
from observant_host.transports.sse_2024 import SseTransport
from observant_host.transports.stdio import StdioTransport
from tests.support.published import MODERN, VERSION_KEY, problems

if TYPE_CHECKING:
    from collections.abc import Iterator

TAPPED = (StdioTransport, HttpTransport, SseTransport)
ANSWER = "(answer)"
ALL_SENT: Counter[tuple[str, str]] = Counter()
"""What every tap of this run has counted."""


def summary() -> list[str]:
    """One line a revision: how many valid messages were sent, by method, most frequent first."""
    by_revision: dict[str, Counter[str]] = {}
    for (revision, method), count in ALL_SENT.items():
        by_revision.setdefault(revision, Counter())[method] += count
    return [
        f"{revision}: {counts.total()} valid messages sent: "
        + ", ".join(f"{method} {count}" for method, count in counts.most_common())
        for revision, counts in sorted(by_revision.items())
    ]


class Tap:
    """`sent` counts valid messages by (revision, method); `wrong` says what is not valid."""

    def __init__(self) -> None:
        self.sent: Counter[tuple[str, str]] = Counter()
        self.wrong: list[str] = []
        self._offered: dict[int, str] = {}

    def saw(self, transport: Any, life: Any, frame: bytes) -> None:
        message = json.loads(frame)
        revision = self._revision(transport, life, message)
        found = problems(message, revision)
        if found:
            self.wrong.append(f"{revision}: {frame[:400]!r}: {'; '.join(found)}")
        else:
            self.sent[revision, message.get("method", ANSWER)] += 1

    def _revision(self, transport: Any, life: Any, message: dict[str, Any]) -> str:
        """A modern message names it; else what was agreed, and until then what was offered."""
        method, params = message.get("method"), message.get("params") or {}
        if VERSION_KEY in params.get("_meta", {}):
            return MODERN
        if method == "initialize":
            self._offered[id(transport)] = params["protocolVersion"]
        era = getattr(life, "era", None)
        if era is not None:
            return era.version
        return self._offered.get(id(transport), MODERN)


@contextmanager
def tapping() -> Iterator[Tap]:
    """Judge all that any transport takes to send, until the block ends."""
    tap, before = Tap(), {}
    lives: dict[int, Any] = {}
    for kind in TAPPED:
        before[kind] = (kind.open, kind.send)
        _wrap(kind, tap, lives)
    try:
        yield tap
    finally:
        ALL_SENT.update(tap.sent)
        for kind, (opens, sends) in before.items():
            kind.open, kind.send = opens, sends  # type: ignore[method-assign]  # put back


def _wrap(kind: Any, tap: Tap, lives: dict[int, Any]) -> None:
    opens, sends = kind.open, kind.send

    async def opened(self: Any, receiver: Any) -> None:
        lives[id(self)] = receiver
        await opens(self, receiver)

    def sent(self: Any, out: Any, expires: float) -> Any:
        result = sends(self, out, expires)
        tap.saw(self, lives.get(id(self)), out.frame)
        return result

    kind.open, kind.send = opened, sent
