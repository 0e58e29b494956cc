"""Where a name leads, and what its caller is told where it leads nowhere."""

from __future__ import annotations

import pytest

from observant_host.decisions.api_names import cleaned
from observant_host.decisions.catalogue import PromptEntry, ResourceEntry, ToolEntry
from observant_host.decisions.names import Grant, Grants
from observant_host.decisions.routes import (
    NotListed,
    Released,
    Unknown,
    Withheld,
    close_matches,
    entry_of,
    find_prompt,
    find_resource,
    find_tool,
    fits_template,
)
from tests.decisions.catalogues import catalogue, disabled, refused, up


def test_an_api_name_shown_before_a_bare_name_was_granted_leads_to_it() -> None:
    found = catalogue(up("a", "search"), up("b", "get", prompts=("ask",)))
    tool, prompt = find_tool(found, cleaned("b/get")), find_prompt(found, cleaned("b/ask"))
    assert isinstance(tool, ToolEntry)
    assert tool is entry_of(found, cleaned("b/get")) is entry_of(found, "get")
    assert isinstance(prompt, PromptEntry)
    assert (tool.name, prompt.name) == ("get", "ask")
    for unknown in (cleaned("b/put"), "b_get_12345678", "b_get"):
        assert entry_of(found, unknown) is None
        assert isinstance(find_tool(found, unknown), Unknown)


def test_canonical_qualified_and_api_names_lead_to_the_tool() -> None:
    found = catalogue(up("a", "search"), up("b", "search"))
    for name in ("b/search", found.tools[1].api_name):
        entry = find_tool(found, name)
        assert isinstance(entry, ToolEntry)
        assert (entry.server, entry.local_name) == ("b", "search")


def test_an_unknown_name_says_what_is_close() -> None:
    found = catalogue(up("a", "search", "get_issue"), up("b", "search"))
    assert find_tool(found, "serach") == Unknown("serach", ("search", "b/search"))
    assert find_tool(found, "c/get_issue") == Unknown("c/get_issue", ("get_issue",))
    assert find_tool(found, "zzzzzz") == Unknown("zzzzzz", ())


def test_a_qualified_name_of_a_listed_server_is_unknown_when_it_does_not_list_it() -> None:
    assert isinstance(find_tool(catalogue(up("a", "x")), "a/y"), Unknown)


@pytest.mark.parametrize("view", [refused("a"), disabled("a")])
def test_a_qualified_name_of_a_server_that_has_not_listed_is_about_that_server(
    view: object,
) -> None:
    found = catalogue(view, up("b", "x"))  # type: ignore[arg-type] # parametrized
    assert find_tool(found, "a/search") == NotListed("a/search", "a")


def test_a_bare_name_waits_for_its_owner() -> None:
    held = Grants({"search": Grant("a")})
    found = catalogue(refused("a"), up("b", "search"), granted=held)
    assert find_tool(found, "search") == NotListed("search", "a")


def test_a_name_given_up_names_the_qualified_ones() -> None:
    held = Grants({"search": Grant("a", 900.0)})
    found = catalogue(up("a"), up("b", "search"), up("c", "search"), granted=held)
    assert find_tool(found, "search") == Released("search", "a", ("b/search", "c/search"))


def test_a_withheld_tool_says_why_under_both_spellings() -> None:
    found = catalogue(up("a", "x", denied=("drop",)))
    for name in ("drop", "a/drop"):
        route = find_tool(found, name)
        assert isinstance(route, Withheld)
        assert route.excluded.reason == "denied"
    assert isinstance(find_prompt(found, "drop"), Unknown)


def test_prompts_are_found_like_tools() -> None:
    found = catalogue(up("a", prompts=("ask",)))
    assert isinstance(find_prompt(found, "a/ask"), PromptEntry)
    assert find_prompt(found, "asks") == Unknown("asks", ("ask",))


def test_a_uri_is_found_listed_or_by_a_template() -> None:
    found = catalogue(
        up("a", resources=("file:///x",)), up("b", templates=("db://{table}/rows/{id}",))
    )
    listed, expanded = find_resource(found, "file:///x"), find_resource(found, "db://t/rows/5")
    assert isinstance(listed, ResourceEntry)
    assert isinstance(expanded, ResourceEntry)
    assert (listed.server, expanded.server) == ("a", "b")
    assert find_resource(found, "file:///y") == Unknown("file:///y", ("file:///x",))


@pytest.mark.parametrize(
    ("uri", "template", "fits"),
    [
        ("file:///a/b", "file:///{+path}", True),
        ("file:///a", "file:///a", True),
        ("file:///ab", "file:///a", False),
        ("http://x", "file:///{x}", False),
        ("a/1/c/2", "a/{x}/c/{y}", True),
        ("a/1/d/2", "a/{x}/c/{y}", False),
        ("a/1/c", "a/{x}/c", True),
        ("a/1/cc", "a/{x}/c!", False),
        ("ab", "ab{x}b", False),
        ("x", "{x", True),
    ],
)
def test_a_uri_fits_a_template_by_its_literal_parts(uri: str, template: str, *, fits: bool) -> None:
    assert fits_template(uri, template) is fits


def test_the_same_last_part_comes_first_and_nothing_is_named_twice() -> None:
    names = ["github/search", "serch", "search", "seerch"]
    assert close_matches("gitlab/search", names)[:2] == ("github/search", "search")
    assert len(set(close_matches("search", names))) == 3


def test_a_wrong_name_costs_a_bounded_number_of_comparisons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []

    def count(_name: str, candidates: list[str], **_options: object) -> list[str]:
        compared.append(len(candidates))
        return candidates[:1]

    monkeypatch.setattr("difflib.get_close_matches", count)
    names = [f"get_item_number_{i}" for i in range(10_000)]
    assert close_matches("get_item_nmber_77", names)[0].startswith("get_item_number_77")
    assert compared == [30]
