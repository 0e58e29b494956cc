"""What was missed is told by name, bounded, and only where something was known before."""

from __future__ import annotations

from msgspec import Raw

from observant_host.decisions.catalogue import ListedPrompt, ListedResource, ListedTool, Listing
from observant_host.decisions.listing_changes import MAX_CHARS, MAX_NAMES, Changes, between


def tool(name: str, raw: bytes = b"{}") -> ListedTool:
    return ListedTool(name, Raw(raw))


def test_what_came_went_and_changed_is_named() -> None:
    before = Listing(
        "s",
        tools=(tool("kept"), tool("gone"), tool("other", b'{"a":1}')),
        prompts=(ListedPrompt("p", Raw(b"{}")),),
        resources=(ListedResource("u:", Raw(b"{}")),),
    )
    after = Listing(
        "s",
        tools=(tool("new"), tool("kept"), tool("other", b'{"a":2}')),
        resources=(
            ListedResource("u:", Raw(b"{}"), is_template=True),
            ListedResource("u:", Raw(b"[]")),
        ),
    )
    assert between(before, after) == Changes(
        added=("template u:", "tool new"),
        removed=("prompt p", "tool gone"),
        changed=("resource u:", "tool other"),
        count=6,
    )


def test_the_same_lists_hold_no_change() -> None:
    assert between(Listing("s", tools=(tool("a"),)), Listing("s", tools=(tool("a"),))) == Changes()
    same = Listing("s")
    assert between(same, same) == Changes()


def test_what_was_never_known_was_not_missed() -> None:
    assert between(None, Listing("s", tools=(tool("a"),))) == Changes()


def test_names_are_bounded_and_all_are_counted() -> None:
    after = Listing("s", tools=tuple(tool(f"{i:03}" + "x" * 500) for i in range(100)))
    changes = between(Listing("s"), after)
    assert changes.count == 100
    assert len(changes.added) == MAX_NAMES
    assert max(map(len, changes.added)) <= len("tool ") + MAX_CHARS
