"""`tools`, `prompts`, `resources`: what all servers offer together, under unique names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from observant_host.cli.call_command import owner_of, read_arguments, show_one
from observant_host.cli.options import (
    command,
    config_option,
    deadline_option,
    json_option,
    pass_screen,
    required,
    standalone_option,
)
from observant_host.cli.session import Session
from observant_host.decisions.model_formats import tool_definition
from observant_host.decisions.tool_search import Index, words_in
from observant_host.decisions.words import approximate_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.cli.source import Listed, Source

Document = dict[str, Any]


def _ask(screen: Screen, config: Path | None, kind: Listed, *, standalone: bool) -> bytes:
    async def listed(source: Source) -> bytes:
        return await source.catalogue(kind)

    return Session(screen, config).ask(listed, standalone=standalone)


@command(
    "tools",
    examples=(
        ("tools", "A table of all tools, and of the names that collided."),
        ("tools --json", "The whole catalogue, each tool as its server sent it."),
        ("tools --format openai > tools.json", "The `tools` array of an OpenAI request."),
        ('tools --search "open an issue"', "Those that have to do with it, the best first."),
        ("tools --cost", "What the descriptions cost a model, roughly, in tokens."),
    ),
)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["openai", "anthropic"]),
    help="Print the `tools` array of this model API (names made fit for it).",
)
@click.option("--search", "query", metavar="QUERY", help="Only tools that fit these words.")
@click.option("--cost", is_flag=True, help="Approximate tokens of each description and schema.")
@json_option
@standalone_option
@config_option
@pass_screen
def tools(
    screen: Screen,
    *,
    shape: str | None,
    query: str | None,
    cost: bool,
    as_json: bool,
    standalone: bool,
    config: Path | None,
) -> None:
    """The tools of all servers under unique names."""
    raw = _ask(screen, config, "tools", standalone=standalone)
    if query is not None:
        raw = searched(raw, query)
    if shape is not None:
        screen.json(for_model(raw, shape))
    elif as_json:
        screen.json(msgspec.Raw(raw))
    else:
        document = msgspec.json.decode(raw)
        _costs(screen, document) if cost else _tools(screen, document)
        if query is None:
            _remarks(screen, document)
        elif not document["tools"]:
            screen.prose("no tool has to do with this; try other words")


def searched(raw: bytes, query: str) -> bytes:
    """The document with those tools alone that fit, the best first, as agents find them."""
    members: dict[str, msgspec.Raw] = _members(raw)
    entries: list[dict[str, msgspec.Raw]] = _entries(members["tools"])
    by_name: dict[str, dict[str, msgspec.Raw]] = {}
    words = []
    for entry in entries:
        name = msgspec.json.decode(entry["name"])
        about = msgspec.json.decode(entry["tool"])
        by_name[name] = entry
        words.append(
            words_in(
                entry["tool"],
                name=name,
                title=_text(about.get("title")),
                description=_text(about.get("description")),
            )
        )
    found = [by_name[name] for name in Index(words).best(query, len(words))]
    return msgspec.json.encode({**members, "tools": found})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def for_model(raw: bytes, shape: str) -> list[Document]:
    """The routable tools as `tools` of a model API; schemas as their servers sent them."""
    entries = msgspec.json.decode(raw)["tools"]
    return [
        tool_definition(
            "openai" if shape == "openai" else "anthropic",
            name=entry["api_name"],
            description=entry["tool"].get("description", ""),
            schema=entry["tool"].get("inputSchema", {"type": "object"}),
        )
        for entry in entries
        if entry["routable"]
    ]


def _tools(screen: Screen, document: Document) -> None:
    screen.table(
        ("name", "server", "callable", "description"),
        [
            (
                entry["name"],
                entry["server"],
                "yes" if entry["routable"] else "no",
                first_sentence(entry["tool"].get("description") or ""),
            )
            for entry in document["tools"]
        ],
        fold="description",
    )


def _costs(screen: Screen, document: Document) -> None:
    costs = [(entry, approximate_tokens(_said(entry["tool"]))) for entry in document["tools"]]
    screen.table(
        ("tokens", "name", "server"),
        [
            (tokens, entry["name"], entry["server"])
            for entry, tokens in sorted(costs, key=lambda pair: -pair[1])
        ],
    )
    total = sum(tokens for _, tokens in costs)
    screen.answer(f"about {total} tokens in all (four bytes of JSON each)")


def _said(tool: Document) -> bytes:
    """What a model is told of a tool: name, description, schema."""
    told = {key: tool[key] for key in ("name", "description", "inputSchema") if key in tool}
    return msgspec.json.encode(told)


def first_sentence(text: str, *, at_most: int = 100) -> str:
    """The beginning of a description, for a table."""
    sentence = " ".join(text.split()).split(". ", 1)[0]
    return sentence if len(sentence) <= at_most else sentence[: at_most - 1] + "…"


def _remarks(screen: Screen, document: Document) -> None:
    """Collisions, exclusions and servers that offer nothing now."""
    for collision in document.get("collisions", ()):
        others = ", ".join(f"`{other['name']}`" for other in collision["others"])
        screen.prose(
            f"`{collision['name']}` belongs to {collision['owner']}; also offered: {others}"
        )
    for excluded in document.get("excluded", ()):
        screen.prose(
            f"excluded: `{excluded['local_name']}` of {excluded['server']} ({excluded['reason']})"
        )
    for missing in document.get("missing", ()):
        why = " ".join(filter(None, (missing["cause"], missing["reason"])))
        screen.prose(f"missing: {missing['server']} is {missing['state']} ({why})")


@command(
    "prompts",
    examples=(
        ("prompts", "A table of all prompts."),
        ("prompts --json", "For a machine."),
        ('prompts get greet --args \'{"who": "Ada"}\'', "One prompt, filled in by its server."),
    ),
)
@click.argument("verb", required=False, type=click.Choice(["get"]))
@click.argument("name", required=False)
@click.option("--args", "given", default="{}", help="A JSON object, @FILE, or - for stdin.")
@deadline_option
@json_option
@standalone_option
@config_option
@pass_screen
def prompts(
    screen: Screen,
    *,
    verb: str | None,
    name: str | None,
    given: str,
    deadline_s: float | None,
    as_json: bool,
    standalone: bool,
    config: Path | None,
) -> int:
    """The prompts of all servers under unique names; with `get`, the messages of one."""
    if verb is not None:
        arguments = read_arguments(given)
        wanted = required(name, "prompts get NAME")
        asking = Session(screen, config)
        return show_one(
            screen,
            asking.ask(
                lambda source: source.prompt(wanted, arguments, deadline_s=deadline_s),
                standalone=standalone,
                only=owner_of(wanted, asking),
            ),
            as_json=as_json,
        )
    raw = _ask(screen, config, "prompts", standalone=standalone)
    if as_json:
        screen.json(msgspec.Raw(raw))
        return 0
    rows = []
    for entry in msgspec.json.decode(raw)["prompts"]:
        prompt = entry["prompt"]
        takes = " ".join(str(one.get("name")) for one in prompt.get("arguments") or ())
        about = first_sentence(prompt.get("description") or "")
        rows.append((entry["name"], entry["server"], takes, about))
    screen.table(("name", "server", "arguments", "description"), rows, fold="description")
    return 0


@command(
    "resources",
    examples=(
        ("resources", "All resources and templates, with the server that owns each."),
        ("resources --json", "For a machine."),
        ("resources read file:///notes.md", "What is in one; its owner answers."),
        ("resources read file:///notes.md --server archive", "As this server has it."),
    ),
)
@click.argument("verb", required=False, type=click.Choice(["read"]))
@click.argument("uri", required=False)
@click.option("--server", help="Read it from this server, also where it does not list it.")
@deadline_option
@json_option
@standalone_option
@config_option
@pass_screen
def resources(
    screen: Screen,
    *,
    verb: str | None,
    uri: str | None,
    server: str | None,
    deadline_s: float | None,
    as_json: bool,
    standalone: bool,
    config: Path | None,
) -> int:
    """The resources and resource templates of all servers; with `read`, what is in one."""
    if verb is not None:
        wanted = required(uri, "resources read URI")
        return show_one(
            screen,
            Session(screen, config).ask(
                lambda source: source.resource(wanted, server=server, deadline_s=deadline_s),
                standalone=standalone,
                only=(server,) if server is not None else (),
            ),
            as_json=as_json,
        )
    raw = _ask(screen, config, "resources", standalone=standalone)
    if as_json:
        screen.json(msgspec.Raw(raw))
        return 0
    show_resources(screen, msgspec.json.decode(raw))
    return 0


def show_resources(screen: Screen, document: Document) -> None:
    """Resources and templates in one table."""
    rows = []
    for entry in document["resources"]:
        kind = "template" if "template" in entry else "resource"
        rows.append((entry["uri"], kind, entry["server"], entry[kind].get("name") or ""))
    screen.table(("uri", "kind", "server", "name"), rows, fold="name")


_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_entries: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
