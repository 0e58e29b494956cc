"""How much work a JSON Schema makes of one value, counted before anybody does it.

References let a schema of a few hundred bytes ask for a billion steps (each of thirty definitions
using the next one twice), and no validator can be interrupted. So the steps are counted first, and
counting stops where there are too many. It counts every branch, so a validator never does more.

Source: MCP 2026-07-28 basic/index › JSON Schema Usage (bound validation time).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SAME: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref")
"""Subschemas that look at the same value again."""
_SAME_BY_NAME: Final = ("dependentSchemas", "dependencies")
_ITEMS: Final = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_MEMBERS: Final = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_UNCOUNTABLE: Final = ("$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor")
"""Where such a reference leads depends on the way to it: never counted, so never judged."""

_NEW_ROOT: Final = ("$id", "id")
"""Below such a member a reference starts somewhere else."""

Pair = tuple[Any, Any]


def steps_within(schema: Any, value: Any, *, budget: int) -> bool:
    """True where validating `value` looks at no more than `budget` pairs of subschema and value.

    False also for references that are not followed here: to other documents, by anchor, dynamic.
    """
    pairs: list[Pair] = [(schema, value)]
    steps = 0
    while pairs:
        here, at = pairs.pop()
        if not isinstance(here, dict):
            continue
        steps += 1 + _plain_work(here, at)
        if steps > budget or _uncountable(here, is_root=here is schema):
            return False
        found = list(_followed(schema, here, at, room=budget - steps))
        if None in found or len(found) > budget - steps:
            return False
        pairs.extend(pair for pair in found if pair is not None)
    return True


def _uncountable(here: Mapping[str, Any], *, is_root: bool) -> bool:
    if any(key in here for key in _UNCOUNTABLE):
        return True
    return not is_root and any(isinstance(here.get(key), str) for key in _NEW_ROOT)


def _plain_work(here: Mapping[str, Any], at: Any) -> int:
    """Keywords that compare many values with many: their work has the size of a product."""
    if isinstance(at, list) and here.get("uniqueItems") is True:
        return len(at) * len(at) // 16
    choices = here.get("enum")
    return len(choices) // 16 if isinstance(choices, list) else 0


def _followed(root: Any, here: Mapping[str, Any], at: Any, *, room: int) -> Iterator[Pair | None]:
    """Every pair one step down; None for a reference that leads elsewhere."""
    for key in _SAME:
        if key in here:
            if key == "$ref":
                yield _target(root, here[key], at)
            else:
                yield from ((sub, at) for sub in _several(here[key]))
    for key in _SAME_BY_NAME:
        yield from ((sub, at) for sub in _named(here.get(key)).values())
    if isinstance(at, list):
        yield from _of_items(here, at, room)
    elif isinstance(at, dict):
        yield from _of_members(here, at, room)


def _of_items(here: Mapping[str, Any], at: list[Any], room: int) -> Iterator[Pair]:
    for key in _ITEMS:
        for sub in _several(here.get(key)):
            if isinstance(sub, dict):
                yield from ((sub, item) for item in at[: room + 1])


def _of_members(here: Mapping[str, Any], at: dict[str, Any], room: int) -> Iterator[Pair]:
    properties = _named(here.get("properties"))
    yield from ((properties[name], at[name]) for name in properties.keys() & at.keys())
    wide = [here.get(key) for key in _MEMBERS]
    wide.extend(_named(here.get("patternProperties")).values())
    for sub in wide:
        if isinstance(sub, dict):
            yield from ((sub, member) for member in list(at.values())[: room + 1])


def _target(root: Any, reference: Any, at: Any) -> Pair | None:
    """A JSON pointer into this same schema; a schema with an `$id` inside may mean another root."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = root
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    named_by_anchor = len(reference) > 1 and not reference.startswith("#/")
    return None if named_by_anchor else (found, at)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _named(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
