"""A whole dashboard: rows of panels, its variables and annotations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dashboards.generate.panels import SOURCE, Json, Panel
from dashboards.generate.promql import HOSTS, query

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA: Final = 39
"""Of Grafana 11.0; newer versions migrate it when they load it."""
COLUMNS: Final = 24


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """A mark on every panel. `moment`: the query's value says when, in milliseconds."""

    name: str
    colour: str
    expr: str
    text: str
    moment: bool = False

    def json(self, scope: str) -> Json:
        return {
            "name": self.name,
            "datasource": SOURCE,
            "enable": True,
            "hide": False,
            "iconColor": self.colour,
            "expr": query(self.expr, scope=scope),
            "titleFormat": self.name,
            "textFormat": self.text,
            "tagKeys": "job,instance,peer",
            "step": "60s",
            "useValueForTime": "on" if self.moment else False,
        }


ANNOTATIONS: Final = (
    Annotation(
        name="Era changes",
        colour="purple",
        expr="sum by (job, instance, peer, direction) "
        '(increase(:era_decisions_total{direction=~"upgrade|downgrade"}[R])) > 0',
        text="{{peer}}: {{direction}}",
    ),
    Annotation(
        name="Restarts",
        colour="orange",
        expr="sum by (job, instance, peer) (increase(:peer_restarts_total[R])) > 0",
        text="{{peer}} began another life",
    ),
    Annotation(
        name="Builds",
        colour="blue",
        expr=":build_info * on (job, instance) group_left () :process_start_time_seconds * 1000",
        text="{{instance}} started with {{version}} on Python {{python}}",
        moment=True,
    ),
    Annotation(
        name="Configuration",
        colour="yellow",
        expr=":config_info unless :config_info offset 2m",
        text="{{instance}} took configuration {{hash}}",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Row:
    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, kw_only=True)
class Board:
    """`uid` never changes: links and bookmarks hold it."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    scope: str = HOSTS

    def json(self) -> Json:
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["observant-host", "mcp"],
            "schemaVersion": SCHEMA,
            "version": 1,
            "editable": False,
            "graphTooltip": 1,
            "timezone": "utc",
            "refresh": "10s",
            "time": {"from": "now-1h", "to": "now"},
            "links": [self._menu()],
            "templating": {"list": self._variables()},
            "annotations": {"list": [one.json(self.scope) for one in ANNOTATIONS]},
            "panels": self._panels(),
        }

    def text(self) -> str:
        return json.dumps(self.json(), indent=1, ensure_ascii=False) + "\n"

    def _menu(self) -> Json:
        return {
            "type": "dashboards",
            "title": "Other dashboards",
            "tags": ["observant-host"],
            "asDropdown": True,
            "includeVars": True,
            "keepTime": True,
        }

    def _variables(self) -> list[Json]:
        found = [
            _source("datasource", "Data Source", "prometheus"),
            _source("tempo", "Tempo (optional)", "tempo"),
            _values("cluster", "Cluster", "", all_value=".*"),
            _values("namespace", "Namespace", 'cluster=~"$cluster"', all_value=".*"),
            _values("job", "Job", 'cluster=~"$cluster",namespace=~"$namespace"'),
            _values("instance", "Host", 'cluster=~"$cluster",namespace=~"$namespace",job=~"$job"'),
        ]
        if "$peer" in self.scope:
            found.append(_values("peer", "Server", HOSTS, metric="observant_host_peer_state"))
        return found

    def _panels(self) -> list[Json]:
        found: list[Json] = []
        down = 0
        for row in self.rows:
            at = {"x": 0, "y": down, "w": COLUMNS, "h": 1}
            found.append(_row(row.title, len(found) + 1, at))
            down = self._place(row, down + 1, found)
        return found

    @staticmethod
    def _place(row: Row, down: int, found: list[Json]) -> int:
        """Left to right, a new line where the next does not fit; gives the first free line."""
        x = height = 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, down, height = 0, down + height, 0
            at = {"x": x, "y": down, "w": panel.width, "h": panel.height}
            found.append(panel.json(len(found) + 1, at))
            x, height = x + panel.width, max(height, panel.height)
        return down + height


def _row(title: str, id_: int, at: Json) -> Json:
    return {
        "id": id_,
        "type": "row",
        "title": title,
        "collapsed": False,
        "gridPos": at,
        "panels": [],
    }


def _source(name: str, label: str, kind: str) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "datasource",
        "query": kind,
        "hide": 0,
        "refresh": 1,
        "regex": "",
        "includeAll": False,
        "multi": False,
        "options": [],
        "current": {},
    }


def _values(
    name: str,
    label: str,
    matchers: str,
    *,
    metric: str = "observant_host_build_info",
    all_value: str = ".+",
) -> Json:
    asked = f"label_values({metric}{{{matchers}}}, {name})"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "definition": asked,
        "query": {"qryType": 1, "query": asked, "refId": f"{name}-values"},
        "hide": 0,
        "refresh": 2,  # with the time range
        "regex": "",
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": all_value,
        "options": [],
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }
