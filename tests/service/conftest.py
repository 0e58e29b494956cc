from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.service.front_desk import Desk, at_work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with at_work() as one:
        yield one
