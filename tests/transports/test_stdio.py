"""The stdio transport keeps the promises of every transport, over real processes."""

from __future__ import annotations

from tests.transports.suite import TransportPromises


class TestStdio(TransportPromises):
    """The fixture `subject` gives real child processes."""
