"""An HTTP server in this process that does exactly what a test says, byte for byte.

No HTTP library: a test can promise more bytes than it sends, cut a connection, or answer twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.receivers import PATIENCE_S

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

JSON = "application/json"
SSE = "text/event-stream"


class Seen(NamedTuple):
    """One request. `headers` have lower-case names; `connection` counts connections from 1, `turn`
    the requests of that connection."""

    verb: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    turn: int

    @property
    def message(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def method(self) -> str | None:
        message = self.message
        return message.get("method") if isinstance(message, dict) else None


class Exchange:
    """One request and the pen for its response."""

    def __init__(self, seen: Seen, writer: asyncio.StreamWriter, peer: HttpPeer) -> None:
        self.seen = seen
        self.peer = peer
        self._writer = writer
        self.keep = True

    @property
    def id(self) -> Any:
        return self.seen.message.get("id")

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self, status: int, content_type: str = "", **headers: Any) -> None:
        """Header names take underscores for dashes."""
        lines = [f"HTTP/1.1 {status} Whatever"]
        if content_type:
            lines.append(f"Content-Type: {content_type}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def whole(self, status: int, content_type: str, body: bytes, **headers: Any) -> None:
        await self.head(status, content_type, Content_Length=len(body), **headers)
        await self.raw(body)

    async def empty(self, status: int, **headers: Any) -> None:
        await self.whole(status, "", b"", **headers)

    async def json(self, value: Any, status: int = 200, content_type: str = JSON, **h: Any) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
        await self.whole(status, content_type, body, **h)

    async def result(self, result: Any = "ok", **headers: Any) -> None:
        await self.json(answer(self.id, result), **headers)

    async def stream(self, content_type: str = SSE, **headers: Any) -> None:
        await self.head(200, content_type, Transfer_Encoding="chunked", **headers)

    async def chunk(self, data: bytes) -> None:
        if data:
            await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, value: Any, **fields: Any) -> None:
        """`id`, `retry`, `event` and the message as one `data` line."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        head = "".join(f"{name}: {field}\n" for name, field in fields.items())
        await self.chunk(head.encode() + b"data: " + data + b"\n\n")

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def gone(self) -> None:
        """Until the client has closed this connection."""
        await self._writer.wait_closed() if self._writer.is_closing() else None
        await self.peer.gone[self.seen.connection].wait()

    def cut(self, *, reset: bool = False) -> None:
        """Close the connection now; `reset`: with an RST instead of a FIN."""
        self.keep = False
        if reset:
            sock = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort() if reset else self._writer.close()


def answer(request_id: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


class HttpPeer:
    """`behave(exchange)` is awaited for each request; returning keeps the connection for the next.

    `async with HttpPeer(behave) as peer:` listens on a free loopback port.
    """

    def __init__(
        self,
        behave: Callable[[Exchange], Awaitable[None]],
        *,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.behave = behave
        self.seen: list[Seen] = []
        self.gone: dict[int, asyncio.Event] = {}
        self.failures: list[BaseException] = []
        self._tls = tls
        self._host = host
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._news = asyncio.Event()
        self.port = 0

    async def __aenter__(self) -> HttpPeer:
        self._server = await asyncio.start_server(
            self._connection, self._host, 0, ssl=self._tls, limit=64 << 20
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        assert not self.failures, self.failures

    async def stop(self) -> None:
        """Listen no more and drop every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in tuple(self._writers):
            writer.transport.abort()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def origin(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    @property
    def connections(self) -> int:
        """How many there have been."""
        return len(self.gone)

    @property
    def methods(self) -> list[str]:
        """The JSON-RPC method of each POST, the verb of anything else."""
        return [seen.method or seen.verb for seen in self.seen]

    async def until(self, condition: Callable[[HttpPeer], object]) -> None:
        """Until `condition(self)` holds; checked at each request and each closed connection."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition(self):
                self._news.clear()
                await self._news.wait()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        number = len(self.gone) + 1
        gone = self.gone[number] = asyncio.Event()
        try:
            await self._requests(reader, writer, number)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except Exception as error:  # noqa: BLE001 - the test is told at the end
            self.failures.append(error)
        finally:
            gone.set()
            self._news.set()
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        turn = 0
        while (head := await _head(reader)) is not None:
            turn += 1
            verb, path, headers = head
            body = await _body(reader, headers)
            seen = Seen(verb, path, headers, body, number, turn)
            self.seen.append(seen)
            self._news.set()
            exchange = Exchange(seen, writer, self)
            watching = asyncio.ensure_future(self._watch(reader, number))
            try:
                await self.behave(exchange)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            if not exchange.keep:
                return

    async def _watch(self, reader: asyncio.StreamReader, number: int) -> None:
        """Notice while answering that the client has hung up."""
        while not reader.at_eof():
            await asyncio.sleep(0.01)
        self.gone[number].set()
        self._news.set()


async def _head(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]] | None:
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = data.decode("utf-8").strip().split("\r\n")
    verb, path, _ = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        assert name.lower() not in headers, f"{name} was sent twice"
        headers[name.lower()] = value.strip()
    return verb, path, headers


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    assert "transfer-encoding" not in headers
    return await reader.readexactly(int(headers.get("content-length", 0)))


@contextlib.asynccontextmanager
async def refusing_port() -> Any:
    """A loopback port on which nobody listens."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
