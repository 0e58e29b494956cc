"""A peer and a lookup for tests of the router: answers by script, moved by a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Raw

from observant_host.config import ServerConfig, StdioServer
from observant_host.decisions.budget import RETRIES, Budget
from observant_host.decisions.peer_states import PeerStatus
from observant_host.decisions.terms import Cause, PeerState
from observant_host.peers.peer import CallReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.peers.errand import Witness


def reply(result: Any = None, *, is_error: bool = False, attempts: int = 1) -> CallReply:
    data = msgspec.json.encode({"content": []} if result is None else result)
    return CallReply(
        raw=Raw(data),
        is_error=is_error,
        era="modern",
        version="2026-07-28",
        generation=1,
        attempts=attempts,
    )


class InLine(NamedTuple):
    """What ends a call that still waited for its place."""

    error: Exception


class ScriptedPeer:
    """`answers` are given in order: a CallReply, an exception, a function of the call, or what ends
    it before it is sent."""

    def __init__(self, name: str, *answers: Any, **config: Any) -> None:
        self.server = ServerConfig(
            name=name, launch=StdioServer(("x",)), fingerprint="sha256:0", **config
        )
        self.status = PeerStatus(PeerState.READY, 0)
        self.routable = True
        self.comes_back = True
        self.retries = Budget(RETRIES)
        self.waited_until: float | None = None
        self.calls: list[dict[str, Any]] = []
        self.answers = list(answers)

    def fall(self, cause: Cause = Cause.PROCESS, detail: str = "it exited") -> None:
        self.routable = False
        self.status = PeerStatus(PeerState.BACKOFF, 0, cause, "", detail)

    def ordinary(self, _kept: object, _call: object) -> None:
        """Its calls are looked at one by one."""

    async def wake(self, expires: float) -> bool:
        self.waited_until = expires
        self.routable = self.comes_back
        return self.comes_back

    async def call(self, method: str, params: Any, **options: Any) -> CallReply:
        said = msgspec.json.decode(msgspec.json.encode(params))
        self.calls.append({"method": method, "params": said, **options})
        answer = self.answers.pop(0) if self.answers else reply()
        if isinstance(answer, InLine):
            raise answer.error
        witness: Witness = options["witness"]
        witness.era = "modern"
        for _ in range(answer.attempts if isinstance(answer, CallReply) else 1):
            witness.asked()
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            return await self._made(answer)
        assert isinstance(answer, CallReply)
        return answer

    async def _made(self, make: Callable[[], Any]) -> CallReply:
        made: CallReply = await make()
        return made


class Lookup(dict[str, ScriptedPeer]):
    """By name."""

    def __init__(self, *peers: ScriptedPeer) -> None:
        super().__init__({peer.server.name: peer for peer in peers})
