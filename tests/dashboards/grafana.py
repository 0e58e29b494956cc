"""The checked-in dashboards as tests read them: every query in them, and what Grafana fills in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dashboards.generate.promql import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DASHBOARDS = Path(__file__).parents[2] / "dashboards"
FILES = ("fleet", "peer", "host")

VALUES = {
    "cluster": ".*",
    "namespace": ".*",
    "job": ".+",
    "instance": ".+",
    "peer": ".+",
    "__rate_interval": "10s",
    "__interval": "5s",
    "__range": "1m",
}
"""What "All" and a short time range fill in."""

_MATCHERS = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}")
_LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')


class Asked(NamedTuple):
    """One query. `kind`: panel, annotation or variable."""

    dashboard: str
    kind: str
    title: str
    expr: str
    instant: bool

    @property
    def name(self) -> str:
        return f"{self.dashboard}: {self.title}"


def read(name: str) -> dict[str, Any]:
    return json.loads((DASHBOARDS / f"grafana/{name}.json").read_text())


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All but the rows."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def every_query(name: str) -> Iterator[Asked]:
    board = read(name)
    for panel in panels(board):
        for target in panel["targets"]:
            title = f"{panel['title']} {target['refId']}"
            yield Asked(name, "panel", title, target["expr"], target["instant"])
    for one in board["annotations"]["list"]:
        yield Asked(name, "annotation", one["name"], one["expr"], instant=False)
    for one in board["templating"]["list"]:
        if one["type"] == "query":
            expr, label = values_of(one["query"]["query"])
            yield Asked(name, "variable", one["name"], f"group by ({label}) ({expr})", instant=True)


def values_of(text: str) -> tuple[str, str]:
    """The selector and the label of `label_values(…)`."""
    found = re.fullmatch(r"label_values\((.*), (\w+)\)", text)
    assert found, text
    return found[1], found[2]


def filled(expr: str, values: Mapping[str, str] = VALUES) -> str:
    """`expr` as Grafana sends it. A variable that nobody defines is a KeyError; `$1` stays."""
    return re.sub(r"\$\{?([a-z_]\w*)\}?", lambda match: values[match[1]], expr)


def selected(expr: str) -> list[tuple[str, set[str]]]:
    """Each metric in `expr` with the labels it is matched by."""
    return [(name, set(_LABEL.findall(body))) for name, body in _MATCHERS.findall(expr)]


def metrics_of(expr: str) -> set[str]:
    """As METRICS names them."""
    return {listed(name) for name, _ in selected(expr)}
