"""What would keep `run` from serving: an open address, tokens, keys and certificates that cannot be
used. Reads the files that the configuration names; opens no listener."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from observant_host.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from observant_host.config import HostConfig


def serving_problems(config: HostConfig) -> Iterator[str]:
    """Sentences that name their key, each as `run` would say it."""
    from observant_host.service.access import listeners
    from observant_host.service.access.tls import tls_context
    from observant_host.service.access.tokens import Tokens
    from observant_host.service.mcp.key_file import keys_of
    from observant_host.timing.clock import SystemClock

    yield from _refused(lambda: listeners(config.service, config.tokens))
    for one in config.tokens.items():
        made = partial(Tokens, dict([one]), config.profiles, clock=SystemClock())
        yield from _refused(made)
    yield from _refused(lambda: tls_context(config.service))
    yield from _refused(lambda: keys_of(config.service))


def _refused(attempt: Callable[[], object]) -> Iterator[str]:
    try:
        attempt()
    except ConfigError as error:
        yield from error.problems
