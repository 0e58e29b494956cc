"""The two tools that stand for a whole catalogue, as they are listed."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from observant_host.decisions.tool_search import MAX_QUERY
from observant_host.service.mcp.outlet import encode

FIND: Final = "find_tools"
CALL: Final = "call_tool"
LIMIT: Final = 5
MAX_LIMIT: Final = 50

FIND_TOOL: Final[dict[str, Any]] = {
    "name": FIND,
    "title": "Find tools",
    "description": (
        "Searches the tools that are available here and returns the best fitting ones: name, "
        "description and input schema. Describe in a few words what is to be done, or give a "
        f"tool's exact name. Then call what was found with {CALL}."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "maxLength": MAX_QUERY,
                "description": 'What is to be done, e.g. "create an issue"; "" gives the first.',
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": LIMIT},
            "schemas": {
                "type": "boolean",
                "default": True,
                "description": "false: names and descriptions only.",
            },
        },
        "required": ["query"],
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "tools": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "title": {"type": "string"},
                        "description": {"type": "string"},
                        "inputSchema": {"type": "object"},
                        "available": {"type": "boolean"},
                    },
                    "required": ["name", "description", "available"],
                },
            },
            "total": {"type": "integer", "description": "Tools that were searched."},
        },
        "required": ["tools", "total"],
    },
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
CALL_TOOL: Final[dict[str, Any]] = {
    "name": CALL,
    "title": "Call a tool",
    "description": f"Calls a tool by its name, with arguments that fit the schema of {FIND}.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": f"As {FIND} gave it."},
            "arguments": {"type": "object", "description": "The tool's own arguments."},
        },
        "required": ["name"],
    },
}
FRONT: Final = frozenset({FIND, CALL})
FRONT_LISTED: Final = (Raw(encode(FIND_TOOL)), Raw(encode(CALL_TOOL)))
"""All that is listed of tools to such a caller."""
