"""Looks at servers without a host that serves: what `init` and `probe --suggest-legacy` use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import msgspec

from observant_host.host.door import Host
from observant_host.supervision.declared import secrets_of
from observant_host.supervision.examine import examine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from observant_host.config import HostConfig, ServerConfig
    from observant_host.supervision.examine import Examination


class Examiner:
    """`async with Examiner(config) as examiner: await examiner.examine(server)`.

    `secrets` are masked besides those of the configuration's `env` and `headers`.
    Keeps nothing; `recall_from` is the state folder whose memory says which servers were modern.
    Any number of examinations may go on at a time.
    """

    def __init__(
        self,
        config: HostConfig,
        *,
        recall_from: str | PathLike[str] | None = None,
        secrets: Sequence[str] = (),
        **keys: Any,
    ) -> None:
        known = (*secrets, *secrets_of(config))
        bare = msgspec.structs.replace(config, servers=())
        self._host = Host(config=bare, recall_from=recall_from, secrets=known, **keys)

    async def __aenter__(self) -> Self:
        await self._host.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._host.close()

    async def examine(
        self, server: ServerConfig, *, principal: str = "cli", reason: str = ""
    ) -> Examination:
        """One server; see `supervision.examine`."""
        core = self._host.core
        core.plan.masker.learn(secrets_of([server]))
        return await examine(server, core.around, principal=principal, reason=reason)
