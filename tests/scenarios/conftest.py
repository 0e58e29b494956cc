"""In every scenario, whatever it is about, each message sent must be valid by its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.tap import tapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.tap import Tap


@pytest.fixture(autouse=True)
def sent() -> Iterator[Tap]:
    """What was sent so far; at the end all of it must be valid."""
    with tapping() as tap:
        yield tap
    assert tap.wrong == []
