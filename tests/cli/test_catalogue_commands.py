"""Tables of what all servers offer."""

from __future__ import annotations

import io

import msgspec

from observant_host.cli.catalogue_commands import show_resources
from observant_host.cli.output import Screen
from observant_host.decisions.catalogue_json import resources_json
from tests.decisions.catalogues import catalogue, up


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
