"""A tool's texts, read from its server's bytes: a wrong member costs only itself."""

from __future__ import annotations

import pytest
from msgspec import Raw

from observant_host.decisions import texts


@pytest.mark.parametrize(
    ("raw", "title", "description"),
    [
        (b'{"title":"T","description":"D","annotations":{"title":"A"}}', "T", "D"),
        (b'{"annotations":{"title":"A"}}', "A", None),
        (b'{"title":5,"description":"D"}', None, "D"),
        (b'{"title":1e999,"description":"D"}', None, "D"),
        (b'{"description":"caf\xff","annotations":[]}', None, None),
        (b"[1]", None, None),
        (b"{", None, None),
    ],
)
def test_each_text_is_read_for_itself(
    raw: bytes, title: str | None, description: str | None
) -> None:
    assert (texts.title(Raw(raw)), texts.description(Raw(raw))) == (title, description)
