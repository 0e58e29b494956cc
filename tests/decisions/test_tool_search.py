"""Tools are found by words, always in the same order, and what is not asked for is not found."""

from __future__ import annotations

import pytest
from msgspec import Raw

from observant_host.decisions.catalogue import ListedTool, ToolEntry
from observant_host.decisions.tool_search import Index, Words, terms_of, words_in, words_of

TOOLS = [
    Words(name="create_issue", title="New issue", description="Open an issue in a repository."),
    Words(name="list_issues", description="All issues of a repository.", parameters=("repo",)),
    Words(name="send_mail", description="Send a message by e-mail.", parameters=("recipient",)),
    Words(name="getWeather", description="The weather of a city, with the temperature."),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("open an issue", "create_issue"),
        ("list issue", "list_issues"),
        ("which issues are there in this repo", "list_issues"),
        ("mail a recipient", "send_mail"),
        ("temperature in Paris", "getWeather"),
        ("get weather", "getWeather"),
        ("get_weather", "getWeather"),
        ("send_mail", "send_mail"),
    ],
)
def test_the_best_comes_first(query: str, first: str) -> None:
    assert Index(TOOLS).best(query, 3)[0] == first


def test_what_has_nothing_to_do_with_it_is_not_found() -> None:
    index = Index(TOOLS)
    assert index.best("temperature", 9) == ["getWeather"]
    assert index.best("zeppelin", 9) == []
    assert index.best("zeppelin weather", 9) == ["getWeather"]


def test_a_name_has_its_tool_first_whatever_else_fits() -> None:
    tools = [Words(name="find", description="x"), Words(name="f_1", description="find find find")]
    assert Index(tools).best("find", 9) == ["find", "f_1"]
    assert Index([Words(name="the"), Words(name="other")]).best("other", 9) == ["other"]
    assert Index([*TOOLS, Words(name="the/of")]).best(" issue ", 1) != ["the/of"]


def test_alike_tools_come_in_their_order_and_a_limit_holds() -> None:
    tools = [Words(name=f"echo_{n}", description="the same") for n in range(30)]
    assert Index(tools).best("echo", 4) == ["echo_0", "echo_1", "echo_2", "echo_3"]
    assert Index(tools).best("echo", 99) == [tool.name for tool in tools]


@pytest.mark.parametrize("query", ["", "  ", "the", "?!"])
def test_a_question_without_words_gives_the_first(query: str) -> None:
    assert Index(TOOLS).best(query, 2) == ["create_issue", "list_issues"]


def test_nothing_and_names_without_words_can_be_searched() -> None:
    assert Index([]).best("x", 3) == []
    assert Index([Words(name="--")]).best("x", 3) == []
    assert Index([Words(name="--")]).best("", 3) == ["--"]


def test_spellings_of_a_name_have_the_same_terms() -> None:
    for text in ("getUserFiles", "get_user_files", "get-user-file", "GET users' files"):
        assert terms_of(text) == ["get", "user", "file"], text
    assert terms_of("HTTPServer queries class is") == ["http", "server", "query", "class"]


def test_words_of_a_tool_are_read_from_its_servers_bytes() -> None:
    raw = b'{"name":"t","inputSchema":{"type":"object","properties":{"city":{},"day":true}},'
    raw += b'"title":"T","description":"' + b"d" * 9000 + b'"}'
    tool = ListedTool("t", Raw(raw))
    words = words_of(ToolEntry("a/t", "a_t", "a", "t", True, tool), name="a_t")
    assert (words.name, words.title, words.parameters) == ("a_t", "T", ("city", "day"))
    assert len(words.description) == 4000


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"inputSchema":3}', b'{"inputSchema":{}}', b"{}"])
def test_a_schema_that_cannot_be_read_costs_only_its_parameters(raw: bytes) -> None:
    assert words_in(raw, name="x") == Words(name="x")
