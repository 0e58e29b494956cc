"""The command line's way to a running host: the JSON API on its private socket.

Answers are the API's documents as bytes, so that `--json` prints them as they came. Errors are
those of `errors`, as if the host were in this process.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Literal, Self
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from observant_host.errors import CallTimeout, ConfigError, HostError, InvalidCall, Unavailable
from observant_host.service.private_socket import PRINCIPAL_HEADER, address, socket_path

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

BASE: Final = "http://host"
"""Whatever the name: the connection is the socket's."""
HELLO_S: Final = 5.0
"""For a host to accept and answer its health: it is on this machine."""


class HostClient:
    """An async context manager. `HostClient.connect(state_dir)` is None where no host runs.

    Every method returns a JSON document and raises HostError with a sentence. `trace` are the
    headers (`traceparent`, `tracestate`) of the trace that its calls belong to.
    """

    def __init__(
        self, state_dir: Path, *, principal: str = "socket", trace: Mapping[str, str] | None = None
    ) -> None:
        self._state_dir = state_dir
        self._headers = {PRINCIPAL_HEADER: principal, **(trace or {})}
        self._resources = AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    async def connect(
        cls, state_dir: Path, *, principal: str = "socket", trace: Mapping[str, str] | None = None
    ) -> Self | None:
        """A client of the host that runs with this state folder, or None. Close it."""
        client = cls(state_dir, principal=principal, trace=trace)
        if not socket_path(state_dir).exists():
            return None
        await client.__aenter__()
        try:
            await client._ask("GET", "/healthz", timeout_s=HELLO_S)
        except HostError:
            await client.close()
            return None
        except BaseException:
            await client.close()
            raise
        return client

    async def __aenter__(self) -> Self:
        path = self._resources.enter_context(address(self._state_dir))
        self._session = await self._resources.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(path),
                headers=self._headers,
            )
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Idempotent."""
        self._session = None
        await self._resources.aclose()

    async def servers(self) -> bytes:
        """`{"servers": […]}` in config order."""
        return await self._ask("GET", "/api/v1/servers")

    async def server(self, name: str) -> bytes:
        """One server's object. Raises InvalidCall where there is none of this name."""
        return await self._ask("GET", f"/api/v1/servers/{quote(name, safe='')}")

    async def probe(self, name: str, *, reason: str = "") -> bytes:
        """A round of negotiation now; the server's object after it."""
        return await self._act(name, "probe", {"reason": reason})

    async def act(
        self, name: str, act: str, *, for_s: float | None = None, reason: str = ""
    ) -> bytes:
        """A person's act of `decisions.acts`; the server's object after it."""
        return await self._act(name, act, {"reason": reason} | _given(for_s=for_s))

    async def allow(self, name: str, *, until: float | None, reason: str) -> bytes:
        """A person's allowance (`until`: epoch seconds); the server's object after it."""
        return await self._act(name, "allow", {"reason": reason} | _given(until=until))

    async def examine(self, name: str, *, reason: str = "") -> bytes:
        """One bounded look in a process of its own; the object of `supervision.examine`."""
        return await self._act(name, "examine", {"reason": reason})

    async def catalogue(self, kind: Literal["tools", "prompts", "resources"]) -> bytes:
        """The catalogue's document of this kind."""
        return await self._ask("GET", f"/api/v1/{kind}")

    async def call(self, name: str, arguments: bytes, *, deadline_s: float | None) -> bytes:
        """The document of `call --json`, also where the call ended without a result.

        `arguments` is a JSON object, sent on as it is.
        """
        body = msgspec.json.encode(
            {"name": name, "arguments": msgspec.Raw(arguments), "deadline_s": deadline_s}
        )
        return await self._ask("POST", "/api/v1/tools/call", body=body, document=b'"outcome"')

    async def prompt(self, name: str, arguments: bytes, *, deadline_s: float | None) -> bytes:
        """As `call`, of a prompt."""
        body = msgspec.json.encode(
            {"name": name, "arguments": msgspec.Raw(arguments), "deadline_s": deadline_s}
        )
        return await self._ask("POST", "/api/v1/prompts/get", body=body, document=b'"outcome"')

    async def resource(self, uri: str, *, server: str | None, deadline_s: float | None) -> bytes:
        """As `call`, of a resource; `server` where another than its owner is meant."""
        body = msgspec.json.encode({"uri": uri, "server": server, "deadline_s": deadline_s})
        return await self._ask("POST", "/api/v1/resources/read", body=body, document=b'"outcome"')

    async def decisions(self, server: str, *, since_s: float | None = None) -> bytes:
        """The document of `explain --json`; `since_s` in epoch seconds."""
        query = {"server": server} | ({"since": repr(since_s)} if since_s is not None else {})
        return await self._ask("GET", f"/api/v1/decisions?{urlencode(query)}")

    async def recent(self) -> bytes:
        """`{"recent": […]}`: the last decisions of all servers, from the host's memory."""
        return await self._ask("GET", "/api/v1/decisions")

    async def log(self) -> bytes:
        """`{"lines": […]}`: the last lines that the host wrote to stderr."""
        return await self._ask("GET", "/api/v1/log")

    async def metrics(self) -> bytes:
        """What `/metrics` shows now, as text."""
        return await self._ask("GET", "/metrics")

    async def incidents(
        self, *, since_s: float, until_s: float, server: str | None = None
    ) -> bytes:
        """The document of `incidents --json`; times in epoch seconds."""
        query = {"since": repr(since_s), "until": repr(until_s)}
        query |= {"server": server} if server is not None else {}
        return await self._ask("GET", f"/api/v1/incidents?{urlencode(query)}")

    async def purge(
        self, *, before_s: float | None, server: str | None, dry_run: bool, reason: str
    ) -> bytes:
        """The document of `record purge --json`; `before_s` in epoch seconds."""
        body = {"before": before_s, "server": server, "dry_run": dry_run, "reason": reason}
        return await self._ask("POST", "/api/v1/record/purge", body=msgspec.json.encode(body))

    async def reload(self, *, dry_run: bool, reason: str = "") -> bytes:
        """The document of `reload --json`. Raises ConfigError with every problem."""
        body = msgspec.json.encode({"dry_run": dry_run, "reason": reason})
        return await self._ask("POST", "/api/v1/reload", body=body)

    async def switch_tool(
        self, server: str, tool: str, *, on: bool, for_s: float | None = None, reason: str = ""
    ) -> bytes:
        """One tool of a server; the server's object after it."""
        body: dict[str, object] = {"reason": reason, "tool": tool} | _given(for_s=for_s)
        return await self._act(server, "enable" if on else "disable", body)

    async def capture(self, name: str, *, for_s: float, arguments: bool, reason: str = "") -> bytes:
        """Begin to write its frames down; where to, and until when."""
        body = {"reason": reason, "for_s": for_s, "arguments": arguments}
        return await self._act(name, "capture", body)

    async def log_level(self, level: str, *, for_s: float, reason: str = "") -> bytes:
        """Another level of the host's log, and until when."""
        body = msgspec.json.encode({"level": level, "for_s": for_s, "reason": reason})
        return await self._ask("POST", "/api/v1/log-level", body=body)

    async def calls(self) -> bytes:
        """`{"in_flight": […], "recent": […]}`."""
        return await self._ask("GET", "/api/v1/calls")

    async def cancel(self, call_id: str, *, reason: str = "") -> bytes:
        """End a call; what it was. Raises InvalidCall where it is not open."""
        path = f"/api/v1/calls/{quote(call_id, safe='')}?{urlencode({'reason': reason})}"
        return await self._ask("DELETE", path)

    async def events(self) -> AsyncGenerator[None]:
        """Something changed: at once, and then as often as it does, until the host ends.

        Raises Unavailable where it cannot be followed.
        """
        if self._session is None:
            raise Unavailable("the client is closed", fault="host")
        unbounded = aiohttp.ClientTimeout(total=None)
        try:
            async with self._session.get(f"{BASE}/api/v1/events", timeout=unbounded) as answer:
                if answer.status != 200:
                    raise _error(answer.status, await answer.read())
                yield
                async for chunk, _ in answer.content.iter_chunks():
                    if b"event:" in chunk:
                        yield
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"the host no longer answers: {error}", fault="host") from error

    async def _act(self, name: str, verb: str, body: Mapping[str, object]) -> bytes:
        path = f"/api/v1/servers/{quote(name, safe='')}/{verb}"
        return await self._ask("POST", path, body=msgspec.json.encode(body))

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        timeout_s: float | None = None,
        document: bytes | None = None,
    ) -> bytes:
        """The answer's body. An error that holds `document` is an answer too."""
        if self._session is None:
            raise Unavailable("the client is closed", fault="host")
        try:
            async with self._session.request(
                method,
                f"{BASE}{path}",
                data=body,
                # without `total` the host's own deadlines are the only ones
                timeout=aiohttp.ClientTimeout(total=timeout_s),
            ) as answer:
                data = await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unavailable(
                f"the running host does not answer on {socket_path(self._state_dir)}: {error}; "
                "see its log, or use --standalone",
                fault="host",
            ) from error
        if answer.status == 200 or (document is not None and document in data):
            return data
        raise _error(answer.status, data)


def _given(**values: float | None) -> dict[str, object]:
    """What is not given is not said."""
    return {key: value for key, value in values.items() if value is not None}


class _Problem(msgspec.Struct):
    type: str = "host_error"
    message: str = ""
    unknown: bool = False
    problems: tuple[str, ...] = ()


class _Answer(msgspec.Struct):
    error: _Problem


def _error(status: int, data: bytes) -> HostError:
    """The host's error, as the class that it was there."""
    try:
        problem = msgspec.json.decode(data, type=_Answer).error
    except msgspec.DecodeError:
        problem = _Problem(message=f"the host answered with HTTP status {status}")
    match problem.type:
        case InvalidCall.error_type:
            return InvalidCall(problem.message, unknown=problem.unknown)
        case Unavailable.error_type:
            return Unavailable(problem.message, fault="host")
        case ConfigError.error_type:
            return ConfigError(problem.problems or (problem.message,))
        case CallTimeout.error_type:
            return CallTimeout(problem.message, scope="call", fault="host")
        case _:
            return HostError(problem.message)
