"""What every fact of the vocabulary is."""

from __future__ import annotations

from typing import Literal

import msgspec

SpanKind = Literal["internal", "client", "server"]


class Fact(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base. `outcome`, `error_type`, `duration` are the operation's, not the fact's."""
