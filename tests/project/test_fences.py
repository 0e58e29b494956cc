"""Fences that a linter of names cannot see: calls of methods that start tasks, timers and scopes.

Every task, timer and deadline is made in `timing` (and by telemetry's own threads), so that each
has a name, an owner and a place in the metrics.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import observant_host
from tests.support.many import for_each

PACKAGE = Path(observant_host.__file__).parent

ALLOWED_ROOMS = ("timing", "telemetry")
STAND_ALONE = ("demo/servers",)
"""Programs that the demo starts as other people's servers: not part of the host."""

FORBIDDEN_METHODS = frozenset({"create_task", "ensure_future", "call_later", "call_at"})
FORBIDDEN_SCOPES = frozenset({"CancelScope"})


def sources() -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in ALLOWED_ROOMS
        and not path.relative_to(PACKAGE).as_posix().startswith(STAND_ALONE)
    ]


def breaches(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else None
        if isinstance(node.func, ast.Name):
            name = node.func.id
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if name in FORBIDDEN_METHODS and not owner.endswith("clock"):
            found.append(f"line {node.lineno}: {ast.unparse(node.func)}(…)")
        if name in FORBIDDEN_SCOPES and any(keyword.arg == "deadline" for keyword in node.keywords):
            found.append(f"line {node.lineno}: {name}(deadline=…)")
    return found


@for_each({path.relative_to(PACKAGE).as_posix(): (path,) for path in sources()})
def test_tasks_timers_and_deadlines_are_made_only_where_they_are_observed(path: Path) -> None:
    assert breaches(ast.parse(path.read_text())) == []


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ("loop.create_task(x())", True),
        ("group.create_task(x())", True),
        ("asyncio.get_running_loop().call_later(1, f)", True),
        ("ensure_future(x())", True),
        ("anyio.CancelScope(deadline=5)", True),
        ("anyio.CancelScope(shield=True)", False),
        ("self._clock.call_at(5, f)", False),
        ("spawn('name', x())", False),
    ],
)
def test_the_fence_itself(line: str, *, caught: bool) -> None:
    assert bool(breaches(ast.parse(line))) is caught
