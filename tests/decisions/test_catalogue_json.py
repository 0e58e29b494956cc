"""The JSON that scripts read: exact members, the servers' objects untouched."""

from __future__ import annotations

import json

import msgspec
from msgspec import Raw

from observant_host.decisions.catalogue import ListedTool
from observant_host.decisions.catalogue_json import prompts_json, resources_json, tools_json
from tests.decisions.catalogues import catalogue, refused, up

ODD = b'{"name":"search", "x-number": 1.10,\t"inputSchema":{"type":"object"}}'


def test_tools() -> None:
    found = catalogue(
        up("a", ListedTool("search", Raw(ODD)), denied=("drop",)), up("b", "search"), refused("c")
    )
    data = msgspec.json.encode(tools_json(found))
    assert b'"tool":' + ODD in data
    said = json.loads(data)
    assert list(said) == ["version", "digest", "tools", "collisions", "excluded", "missing"]
    assert said["version"] == 1
    assert said["tools"][1] == {
        "name": "b/search",
        "api_name": found.tools[1].api_name,
        "server": "b",
        "local_name": "search",
        "routable": True,
        "pin": "unlocked",
        "tool": {"name": "search"},
    }
    assert said["collisions"] == [
        {"name": "search", "owner": "a", "others": [{"server": "b", "name": "b/search"}]}
    ]
    assert said["excluded"] == [
        {"server": "a", "local_name": "drop", "reason": "denied", "detail": ""}
    ]
    assert said["missing"] == [
        {
            "server": "c",
            "state": "unavailable",
            "cause": "policy",
            "reason": "ambiguous_timeout",
        }
    ]


def test_prompts_and_resources() -> None:
    found = catalogue(
        up("a", prompts=("ask",), resources=("file:///x",), templates=("file:///{x}",)),
        up("b", prompts=("ask",), resources=("file:///x",)),
    )
    prompts = json.loads(msgspec.json.encode(prompts_json(found)))
    assert [(p["name"], p["prompt"]) for p in prompts["prompts"]] == [
        ("ask", {"name": "ask"}),
        ("b/ask", {"name": "ask"}),
    ]
    assert prompts["collisions"][0]["owner"] == "a"
    assert prompts["excluded"] == []

    resources = json.loads(msgspec.json.encode(resources_json(found)))
    assert resources["resources"] == [
        {
            "uri": "file:///x",
            "server": "a",
            "routable": True,
            "resource": {"uri": "file:///x"},
        },
        {
            "uri": "file:///{x}",
            "server": "a",
            "routable": True,
            "template": {"uriTemplate": "file:///{x}"},
        },
    ]
    assert [(e["server"], e["reason"]) for e in resources["excluded"]] == [
        ("b", "collision_rejected")
    ]
