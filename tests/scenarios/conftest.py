"""In every scenario, whatever it is about, each message sent must be valid by its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.tap import tapping

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def every_message_is_valid() -> Iterator[None]:
    with tapping() as tap:
        yield
    assert tap.wrong == []
