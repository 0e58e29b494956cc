"""Watching a host: what happens where it does not tell of changes, or is gone."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from observant_host.cli import watching
from observant_host.errors import Unavailable
from observant_host.service.client import HostClient

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


class Silent(HostClient):
    """It is followed by nobody; `answers` is how often it can be asked."""

    def __init__(self, state_dir: Path, *, answers: int) -> None:
        super().__init__(state_dir)
        self._answers = answers
        self._asked = 0

    async def servers(self) -> bytes:
        self._asked += 1
        if self._asked > self._answers:
            raise Unavailable("it is gone", fault="host")
        return b"%d" % self._asked

    async def events(self) -> AsyncGenerator[None]:
        raise Unavailable("64 listen to events already", fault="host")
        yield


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "REPAINT_S", 0.0)


async def test_a_host_that_tells_of_no_changes_is_asked_again_and_again(tmp_path: Path) -> None:
    async with aclosing(watching.watched(Silent(tmp_path, answers=9))) as documents:
        assert [await anext(documents) for _ in range(2)] == [b"2", b"3"]


@pytest.mark.parametrize("answers", [0, 2])
async def test_a_host_that_is_gone_ends_the_watching(tmp_path: Path, answers: int) -> None:
    with pytest.raises(Unavailable, match="it is gone"):
        async for _ in watching.watched(Silent(tmp_path, answers=answers)):
            pass
