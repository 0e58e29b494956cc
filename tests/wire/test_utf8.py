"""What is UTF-8, in pieces as well as whole."""

from __future__ import annotations

import pytest

from observant_host.wire.utf8 import PIECE_BYTES, check_utf8

SIGN = "\N{EURO SIGN}".encode()


@pytest.mark.parametrize("before", range(PIECE_BYTES - 3, PIECE_BYTES + 1))
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_sign_may_lie_across_two_pieces(before: int, kind: type) -> None:
    check_utf8(kind(b"x" * before + SIGN + b"x" * PIECE_BYTES))


@pytest.mark.parametrize("size", [0, PIECE_BYTES, 3 * PIECE_BYTES])
@pytest.mark.parametrize("bad", [b"\xff", SIGN[:2], b"\xed\xa0\x80"], ids=repr)
@pytest.mark.parametrize("after", [b"", b"x"])
def test_what_is_none_is_refused_wherever_it_stands(size: int, bad: bytes, after: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        check_utf8(b"x" * size + bad + after)
