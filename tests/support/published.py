"""Judges messages by the protocol's published schemas, with a validator that we do not ship."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMAS = Path(__file__).parent / "schemas"
MODERN = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
ANSWERS = ("CreateMessageResult", "ListRootsResult", "ElicitResult")
"""What a client may answer a legacy server's request with, beside an empty result."""

NO_PART_OF_THE_SCHEMA = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
"""At 2026-07-28 these belong to an extension, which has a schema of its own."""


def problems(message: dict[str, Any], revision: str) -> list[str]:
    """What the revision's schema has against this message of a client; [] where it is valid."""
    method = message.get("method")
    if method is None:
        return _problems_of_answer(message, revision)
    if revision == MODERN and method in NO_PART_OF_THE_SCHEMA:
        return []
    definition = _by_method(revision).get(method)
    if definition is None:
        return [f"{method} is no message of a client at {revision}"]
    envelope = "JSONRPCRequest" if "id" in message else "JSONRPCNotification"
    return _problems(message, revision, envelope) + _problems(message, revision, definition)


def definition_problems(message: Any, revision: str, definition: str) -> list[str]:
    """What one definition of the revision's schema has against this; [] where it is valid."""
    return _problems(message, revision, definition)


def methods(revision: str) -> frozenset[str]:
    """All that a client of this revision may send, requests and notifications."""
    return frozenset(_by_method(revision))


RESULTS = {
    "initialize": "InitializeResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
    "ping": "EmptyResult",
    "logging/setLevel": "EmptyResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
}
"""What a legacy server answers each method with."""


def defined(revision: str, name: str) -> dict[str, Any]:
    """One definition of a revision's schema."""
    return _definitions(revision)[1][name]


def result_problems(method: str, result: dict[str, Any], revision: str) -> list[str]:
    """What the revision's schema has against this result of a legacy server."""
    return _problems(result, revision, RESULTS[method])


def told_problems(message: dict[str, Any], revision: str) -> list[str]:
    """What it has against a notification, or a request, of a legacy server."""
    union = "ServerRequest" if "id" in message else "ServerNotification"
    return _problems(message, revision, union)


@functools.cache
def _document(revision: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{revision}.json").read_text())


def _definitions(revision: str) -> tuple[str, dict[str, Any]]:
    document = _document(revision)
    key = "definitions" if "definitions" in document else "$defs"
    return key, document[key]


@functools.cache
def _by_method(revision: str) -> dict[str, str]:
    """The definition of each method that ClientRequest or ClientNotification names."""
    _, definitions = _definitions(revision)
    found = {}
    for union in ("ClientRequest", "ClientNotification"):
        parts = definitions[union].get("anyOf")
        names = [part["$ref"].rpartition("/")[2] for part in parts] if parts else [union]
        for name in names:
            found[definitions[name]["properties"]["method"]["const"]] = name
    return found


@functools.cache
def _validator(revision: str, definition: str) -> Any:
    document = _document(revision)
    key, _ = _definitions(revision)
    whole = {"$schema": document["$schema"], key: document[key], "$ref": f"#/{key}/{definition}"}
    return jsonschema.validators.validator_for(whole)(whole)


def _problems_of_answer(message: dict[str, Any], revision: str) -> list[str]:
    _, definitions = _definitions(revision)
    kinds = ("JSONRPCErrorResponse", "JSONRPCError", "JSONRPCResultResponse", "JSONRPCResponse")
    wanted = "Error" if "error" in message else "Res"
    envelope = next(kind for kind in kinds if kind in definitions and kind[7:].startswith(wanted))
    found = _problems(message, revision, envelope)
    results = [kind for kind in ANSWERS if kind in definitions]
    if not message.get("result") or len(results) < len(ANSWERS):
        return found  # before elicitation the schema allows a client any result
    if any(not _problems(message["result"], revision, kind) for kind in results):
        return found
    return [*found, f"its result is none of {', '.join(results)}: {message['result']}"]


def _problems(message: dict[str, Any], revision: str, definition: str) -> list[str]:
    return [
        f"{definition}: {error.json_path}: {error.message[:200]}"
        for error in _validator(revision, definition).iter_errors(message)
    ]
