"""HTTP keeps the promises of every transport, in each revision and in both forms of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from blockbuster import blockbuster_ctx

from observant_host.errors import HttpFailure
from tests.support.processes import eventually, open_fds
from tests.transports.http_subjects import MODERN, OldSseSubject, StreamableSubject
from tests.transports.suite import FAR, TransportPromises, opened, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

REVISIONS = {
    "modern": (MODERN, True),
    "2025-11-25": ("2025-11-25", False),
    "2025-06-18": ("2025-06-18", False),
    "2025-03-26": (None, False),
}


@pytest.fixture(
    params=[(name, form) for name in REVISIONS for form in ("json", "sse")], ids="-".join
)
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[StreamableSubject]:
    name, form = request.param
    version, is_modern = REVISIONS[name]
    before = open_fds()
    subject = StreamableSubject(version, is_modern=is_modern, streaming=form == "sse")
    async with subject.peer:
        with blockbuster_ctx("observant_host"):
            yield subject
        for transport in subject.made:
            await transport.close()
    await eventually(lambda: open_fds() <= before)


class TestStreamableHttp(TransportPromises):
    async def test_a_peer_that_leaves_ends_the_life_after_its_last_answer(  # type: ignore[override] # HTTP has no connection whose end is the life's
        self, subject: StreamableSubject
    ) -> None:
        """Over HTTP a server that is gone costs each request, and the life goes on."""
        transport = subject.make()
        recorder = await opened(transport)
        transport.send(request(1, "leave"), expires=FAR)
        await recorder.answer_to(1)
        await subject.peer.stop()
        transport.send(request(2, "echo"), expires=FAR)
        loss = await recorder.loss_of(2)
        assert isinstance(loss, HttpFailure)
        assert (loss.kind, loss.sent) == ("refused", False)
        assert recorder.ends == []

    async def test_cancellation_is_left_to_a_notification(  # type: ignore[override] # only a legacy one's
        self, subject: StreamableSubject
    ) -> None:
        """A modern request is cancelled by closing its stream; a legacy one by a notification."""
        transport = subject.make()
        await opened(transport)
        transport.send(request(1, "hold"), expires=FAR)
        await subject.peer.until(lambda peer: peer.methods.count("hold"))
        assert transport.cancel(1) is subject.is_modern
        await subject.peer.until(lambda peer: peer.gone[1].is_set())


@pytest.fixture
async def old_sse() -> AsyncIterator[OldSseSubject]:
    before = open_fds()
    subject = OldSseSubject()
    async with subject.peer:
        with blockbuster_ctx("observant_host"):
            yield subject
        for transport in subject.made:
            await transport.close()
    await eventually(lambda: open_fds() <= before)


class TestHttpSse(TransportPromises):
    @pytest.fixture
    def subject(self, old_sse: OldSseSubject) -> OldSseSubject:
        return old_sse
