"""What the interop tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.page import serving_page

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def page() -> Iterator[str]:
    """URL of a page that says "a page of nobody"."""
    with serving_page() as url:
        yield url
