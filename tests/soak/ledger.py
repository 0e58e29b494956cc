"""What was asked for beside what was done: each call's one outcome, each token's executions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Ended(NamedTuple):
    """How one call ended, as its caller was told."""

    outcome: str
    delivery: str
    answered_rightly: bool = True


class Account:
    """Of every call of a run. Tokens are numbers from 0 on; each is used for one call.

    One byte a call: a run has to show that memory does not grow.
    """

    def __init__(self) -> None:
        self._kinds: list[Ended | None] = [None]
        self._ended = bytearray()
        self._twice: list[int] = []

    def next_token(self) -> int:
        self._ended.append(0)
        return len(self._ended) - 1

    def ended(self, token: int, how: Ended) -> None:
        if self._ended[token]:
            self._twice.append(token)
        if how not in self._kinds:
            self._kinds.append(how)
        self._ended[token] = self._kinds.index(how)

    def outcomes(self) -> Counter[str]:
        counted = Counter(self._kinds[kind] for kind in self._ended)
        return Counter(
            {f"{how.outcome} ({how.delivery})": n for how, n in counted.items() if how is not None}
        )

    def broken_promises(self, ledgers: Path) -> list[str]:
        """One line for each token whose outcome and executions do not agree; empty is well."""
        done: Counter[int] = Counter()
        for file in ledgers.iterdir():
            done.update(int(line) for line in file.read_text().splitlines())
        found = [f"token {token} ended twice" for token in self._twice]
        for token, kind in enumerate(self._ended):
            how = self._kinds[kind]
            problem = _problem(how, done[token])
            if problem is not None:
                found.append(f"token {token}: {problem} ({how}, executed {done[token]} times)")
        return found


def _problem(how: Ended | None, executed: int) -> str | None:
    if how is None:
        return "no outcome"
    if executed > 1:
        return "a side effect happened twice"
    if how.delivery == "not_sent" and executed:
        return "said not sent, and was"
    if how.outcome == "ok" and not executed:
        return "said ok, and was never done"
    if not how.answered_rightly:
        return "got the answer of another call"
    return None
