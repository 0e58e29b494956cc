"""What the interop tests share. Every message that a host in their process sends is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.page import serving_page
from tests.support.tap import tapping

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def page() -> Iterator[str]:
    """URL of a page that says "a page of nobody"."""
    with serving_page() as url:
        yield url


@pytest.fixture(autouse=True)
def every_message_is_valid() -> Iterator[None]:
    with tapping() as tap:
        yield
    assert tap.wrong == []
