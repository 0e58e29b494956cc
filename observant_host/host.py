"""The composition root: the one place that knows every layer, and the library's front door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from observant_host.config import HostConfig, HttpServer, StdioServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from os import PathLike

    from observant_host.decisions.catalogue import Catalogue
    from observant_host.decisions.terms import PeerState
    from observant_host.supervision.peer_state import ServerView

    OnProgress = Callable[[float, float | None, str | None], None]


class Host:
    """Many MCP servers as one catalogue. An async context manager; closable from any task, twice.

    `state_dir` None keeps nothing on disk; `record` writes decisions and traces below it.
    `on_elicitation`, `on_sampling`, `on_roots` answer what servers ask for; without a handler the
    capability is not declared.
    """

    def __init__(
        self,
        state_dir: str | PathLike[str] | None = None,
        record: bool = False,
        *,
        config: HostConfig | None = None,
        on_elicitation: Any = None,
        on_sampling: Any = None,
        on_roots: Any = None,
        telemetry: Any = None,
        clock: Any = None,
    ) -> None:
        raise NotImplementedError

    @classmethod
    def from_config(cls, path: str | PathLike[str], **handlers: Any) -> Self:
        """A host by a configuration file. Raises ConfigError with every problem at once."""
        raise NotImplementedError

    def add_server(
        self,
        name: str,
        launch: StdioServer | HttpServer,
        *,
        allow_legacy: bool | Sequence[str] = False,
        **keys: Any,
    ) -> None:
        """Add a server, before or after start; `keys` are those of a `[servers.NAME]` table."""
        raise NotImplementedError

    def remove_server(self, name: str) -> Awaitable[None]:
        """Forget a server at once; awaiting the answer waits until its process is gone."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, *exc: object) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def drain(self, timeout_s: float | None = None) -> bool:
        """Refuse new calls, wait for the open ones; True if all ended in time."""
        raise NotImplementedError

    @property
    def catalogue(self) -> Catalogue:
        raise NotImplementedError

    @property
    def servers(self) -> Mapping[str, ServerView]:
        raise NotImplementedError

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        deadline_s: float | None = None,
        on_progress: OnProgress | None = None,
        principal: str | None = None,
    ) -> Any:
        """-> routing's CallResult. Raises errors.CallError."""
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None, **kw: Any) -> Any:
        raise NotImplementedError

    async def read_resource(self, uri: str, *, server: str | None = None, **kw: Any) -> Any:
        raise NotImplementedError

    async def complete(self, ref: Mapping[str, Any], argument: Mapping[str, Any], **kw: Any) -> Any:
        raise NotImplementedError

    async def wait_for(self, name: str, *states: PeerState | str) -> ServerView:
        """Wait until the server is in one of these states and the catalogue shows it."""
        raise NotImplementedError

    async def probe(self, name: str, *, principal: str = "library", reason: str = "") -> ServerView:
        """A round now (a person's act); returns the view after it."""
        raise NotImplementedError

    async def allow(
        self, name: str, *, until: float | None = None, reason: str = "", principal: str = "library"
    ) -> ServerView:
        """Allow legacy for the server's present fingerprint until `until` (epoch seconds,
        default 180 days); forgets `was_modern` and starts a round."""
        raise NotImplementedError

    async def examine(self, name: str, *, principal: str = "library") -> Any:
        """-> supervision.examine.Examination"""
        raise NotImplementedError

    async def explain(self, name: str, *, since_ns: int | None = None) -> list[dict[str, Any]]:
        """The decisions about this server, oldest first: objects of `explain --json`."""
        raise NotImplementedError
