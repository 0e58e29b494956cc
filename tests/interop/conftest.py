"""What the interop tests share. Every message that a host in their process sends is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.page import serving_page
from tests.support.tap import tapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.tap import Tap


@pytest.fixture(scope="session")
def page() -> Iterator[str]:
    """URL of a page that says "a page of nobody"."""
    with serving_page() as url:
        yield url


@pytest.fixture(autouse=True)
def sent() -> Iterator[Tap]:
    """What was sent so far; at the end all of it must be valid."""
    with tapping() as tap:
        yield tap
    assert tap.wrong == []
