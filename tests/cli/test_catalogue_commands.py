"""Tables of what all servers offer."""

from __future__ import annotations

import io

import msgspec

from observant_host.cli.catalogue_commands import searched, show_resources
from observant_host.cli.output import Screen
from observant_host.decisions.catalogue_json import resources_json, tools_json
from tests.decisions.catalogues import catalogue, tool, up


def test_resources_and_templates_are_one_table() -> None:
    found = catalogue(up("a", resources=("file:///x",), templates=("file:///{x}",)))
    screen = Screen(out=io.StringIO())
    show_resources(screen, msgspec.json.decode(msgspec.json.encode(resources_json(found))))
    assert isinstance(screen.out, io.StringIO)
    assert screen.out.getvalue().splitlines() == [
        "URI          KIND      SERVER  NAME",
        "file:///x    resource  a",
        "file:///{x}  template  a",
    ]


def test_a_search_leaves_what_fits_with_the_best_first_and_bytes_as_they_are() -> None:
    mail = tool("send_mail", title=3, description="Send a message.", x=1.0)
    issue = tool("create_issue", description="Open an issue, and send a message about it.")
    found = catalogue(up("a", "echo", issue, mail))
    document = msgspec.json.encode(tools_json(found))
    out = searched(document, "send mail message")
    assert b'"x": 1.0' in out or b'"x":1.0' in out
    names = [one["name"] for one in msgspec.json.decode(out)["tools"]]
    assert names == ["send_mail", "create_issue"]
    assert msgspec.json.decode(out).keys() == msgspec.json.decode(document).keys()
    assert msgspec.json.decode(searched(document, "zeppelin"))["tools"] == []
