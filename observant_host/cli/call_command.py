"""`call`: one routed call, its result on stdout, what became of it as the exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from observant_host.cli.main import EXIT_BY_OUTCOME
from observant_host.cli.options import (
    command,
    config_option,
    deadline_option,
    json_option,
    pass_screen,
    standalone_option,
)
from observant_host.cli.session import Session
from observant_host.decisions.words import milliseconds
from observant_host.errors import InvalidCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from observant_host.cli.output import Screen
    from observant_host.cli.source import Source


@command(
    "call",
    examples=(
        ('call search --args \'{"query": "tides"}\'', "The owner of the bare name answers."),
        ('call web/search --args \'{"query": "tides"}\'', "This server's tool, in any case."),
        ("call report --args @arguments.json --deadline 5", "Arguments from a file; five seconds."),
        ("call report --args - --json < arguments.json", "From stdin; everything for a machine."),
    ),
)
@click.argument("name")
@click.option("--args", "given", default="{}", help="A JSON object, @FILE, or - for stdin.")
@deadline_option
@json_option
@standalone_option
@config_option
@pass_screen
def call(
    screen: Screen,
    *,
    name: str,
    given: str,
    deadline_s: float | None,
    as_json: bool,
    standalone: bool,
    config: Path | None,
) -> int:
    """Call the tool NAME once.

    NAME is a name of `observant-host tools`, bare, api or qualified. Exit code: 0 ok; 1 the tool or
    its server answered with an error; 2 unknown name, bad arguments or a broken answer; 3 not
    available; 4 the deadline passed; 130 cancelled.
    """
    arguments = read_arguments(given)
    session = Session(screen, config)

    async def once(source: Source) -> bytes:
        return await source.call(name, arguments, deadline_s=deadline_s)

    raw = session.ask(once, standalone=standalone, only=owner_of(name, session))
    return show_one(screen, raw, as_json=as_json)


def show_one(screen: Screen, raw: bytes, *, as_json: bool) -> int:
    """One call's document, for a machine or a person; its exit code."""
    document: dict[str, Any] = msgspec.json.decode(raw)
    if as_json:
        screen.json(msgspec.Raw(raw))
    else:
        show(screen, document)
    return EXIT_BY_OUTCOME[document["outcome"]]


def read_arguments(given: str) -> bytes:
    """The JSON object that `--args` means, as bytes. Raises InvalidCall."""
    if given == "-":
        text = sys.stdin.buffer.read()
    elif given.startswith("@"):
        try:
            text = Path(given[1:]).read_bytes()
        except OSError as error:
            raise InvalidCall(f"--args {given}: cannot read the file ({error.strerror})") from error
    else:
        text = given.encode()
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidCall(
            f'--args is no JSON ({error}); give an object such as \'{{"query": "tides"}}\''
        ) from error
    if not isinstance(value, dict):
        raise InvalidCall("--args must be a JSON object: the tool's arguments by name")
    return text


def owner_of(name: str, session: Session) -> tuple[str, ...]:
    """The only server that a qualified name needs; empty (all) for every other name."""
    server, slash, _tool = name.partition("/")
    return (server,) if slash and server in session.server_names() else ()


def show(screen: Screen, document: dict[str, Any]) -> None:
    """The result for a person: texts on stdout, the rest of the story on stderr."""
    for line in content_lines(document["result"] or {}):
        screen.answer(line)
    era = document["era"] if document["era"] != "unknown" else ""
    where = " ".join(filter(None, (document["server"], era)))
    took = milliseconds(document["duration_ms"])
    trace = f", trace {document['trace_id']}" if document["trace_id"] else ""
    if document["error"] is not None:
        screen.fail(
            f"{document['error']['message']} ({document['outcome']}, "
            f"{document['delivery'].replace('_', ' ')}, fault: {document['fault']})"
        )
    if document.get("schema_problem") is not None:
        screen.say(f"the tool's outputSchema: {document['schema_problem']['detail']}")
    screen.say(f"{document['outcome']}{f' from {where}' if where else ''} in {took}{trace}")


def content_lines(result: dict[str, Any]) -> list[str]:
    """What a person can read of a result; blocks that are no text are named."""
    lines = []
    for block in blocks(result):
        match block:
            case {"type": "text", "text": str(text)}:
                lines.append(text)
            case {"type": "resource", "resource": {"text": str(text)}} | {
                "uri": _,
                "text": str(text),
            }:
                lines.append(text)
            case {"uri": str(uri), "blob": str(data)}:
                lines.append(f"[{uri} {block.get('mimeType', '')}, {len(data) * 3 // 4} bytes]")
            case {"type": kind, "data": str(data)}:
                lines.append(f"[{kind} {block.get('mimeType', '')}, {len(data) * 3 // 4} bytes]")
            case _:
                lines.append(msgspec.json.encode(block).decode())
    if not lines and "structuredContent" in result:
        lines.append(msgspec.json.encode(result["structuredContent"]).decode())
    return lines


def blocks(result: dict[str, Any]) -> Iterator[Any]:
    """Of a tool's content, a prompt's messages, or a resource's contents."""
    yield from result.get("content") or ()
    yield from result.get("contents") or ()
    for message in result.get("messages") or ():
        content = message.get("content") if isinstance(message, dict) else message
        yield from content if isinstance(content, list) else [content]
