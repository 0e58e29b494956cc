"""Looks at servers without a host that serves: what `init` and `probe --suggest-legacy` use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import msgspec

from observant_host.errors import ConfigError, InstanceLocked
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

    `secrets` are masked besides those of the configuration's `env` and `headers`. `state_dir` is
    the state folder whose memory says which servers were modern, and where each look is recorded,
    as the configuration says; a folder that a running host holds, or that cannot be written, is
    only read. None: nothing is kept. Any number of examinations may go on at a time.
    """

    def __init__(
        self,
        config: HostConfig,
        *,
        state_dir: str | PathLike[str] | None = None,
        secrets: Sequence[str] = (),
        **keys: Any,
    ) -> None:
        known = (*secrets, *secrets_of(config))
        bare = msgspec.structs.replace(config, servers=())
        self._folder = state_dir
        self._record = state_dir is not None and config.telemetry.record
        self._opens = partial(Host, config=bare, secrets=known, partial=True, **keys)
        self._host: Host

    async def __aenter__(self) -> Self:
        self._host = self._opens(state_dir=self._folder, record=self._record)
        try:
            await self._host.__aenter__()
        except (InstanceLocked, ConfigError):  # held by a running host, or not to be written
            self._host = self._opens(recall_from=self._folder)
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
