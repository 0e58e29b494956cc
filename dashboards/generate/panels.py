"""Panels as data, and the JSON that Grafana 11 and newer read."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json = dict[str, Any]

SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
GREEN, AMBER, RED, BLUE, GREY = "green", "orange", "red", "blue", "text"
PLUGINS: Final = "11.0.0"
"""The version of Grafana whose panel options these are; newer ones migrate them."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """One query of a panel. `legend` is Grafana's legendFormat."""

    expr: str
    legend: str = ""
    exemplars: bool = False


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: the label, or the letter of the query whose value it shows."""

    title: str
    unit: str = ""
    link: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Panel(ABC):
    """What every panel has. `thresholds`: (from this value on, colour), ascending."""

    title: str
    description: str
    queries: Sequence[Query]
    unit: str = "short"
    width: int = 12
    height: int = 8
    links: Sequence[tuple[str, str]] = ()
    mappings: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    thresholds: Sequence[tuple[float, str]] = ()
    type = ""
    instant = False

    @abstractmethod
    def options(self) -> Json:
        """What only this kind of panel has."""

    def custom(self) -> Json:
        return {}

    def more(self) -> Json:
        return {}

    def json(self, id_: int, at: Json) -> Json:
        return {
            "id": id_,
            "type": self.type,
            "title": self.title,
            "description": self.description,
            "datasource": SOURCE,
            "gridPos": at,
            "pluginVersion": PLUGINS,
            "targets": [self._target(n, one) for n, one in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": self.overrides()},
            "options": self.options(),
            **self.more(),
        }

    def overrides(self) -> list[Json]:
        return []

    def _target(self, number: int, one: Query) -> Json:
        return {
            "refId": "ABCDEFGH"[number],
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": one.expr,
            "legendFormat": one.legend,
            "exemplar": one.exemplars,
            "instant": self.instant,
            "range": not self.instant,
            "format": "table" if self.type == "table" else "time_series",
        }

    def _defaults(self) -> Json:
        steps: list[Json] = [{"color": GREEN, "value": None}]
        steps += [{"color": colour, "value": value} for value, colour in self.thresholds]
        found: Json = {
            "unit": self.unit,
            "custom": self.custom(),
            "links": [link_json(*one) for one in self.links],
            "thresholds": {"mode": "absolute", "steps": steps},
        }
        if self.mappings:
            texts = {
                str(value): {"text": text, "color": colour, "index": index}
                for index, (value, (text, colour)) in enumerate(self.mappings.items())
            }
            found["mappings"] = [{"type": "value", "options": texts}]
        return found


@dataclass(frozen=True, kw_only=True)
class Stat(Panel):
    """One number."""

    width: int = 3
    height: int = 4
    type = "stat"
    instant = True

    def options(self) -> Json:
        return {
            "colorMode": "value" if self.thresholds else "none",
            "graphMode": "none",
            "textMode": "auto",
            "justifyMode": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        }


@dataclass(frozen=True, kw_only=True)
class Lines(Panel):
    """Values over time; `stacked` where they add up to something."""

    stacked: bool = False
    type = "timeseries"

    def custom(self) -> Json:
        return {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 30 if self.stacked else 5,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
        }

    def options(self) -> Json:
        legend = {
            "showLegend": True,
            "displayMode": "table",
            "placement": "right",
            "calcs": ["lastNotNull", "max"],
        }
        return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}


@dataclass(frozen=True, kw_only=True)
class States(Panel):
    """Which state, when."""

    width: int = 24
    type = "state-timeline"

    def custom(self) -> Json:
        return {"lineWidth": 0, "fillOpacity": 80}

    def options(self) -> Json:
        legend = {"showLegend": True, "displayMode": "list", "placement": "bottom"}
        return {
            "mergeValues": True,
            "showValue": "auto",
            "alignValue": "left",
            "rowHeight": 0.85,
            "legend": legend,
            "tooltip": {"mode": "single", "sort": "none"},
        }


@dataclass(frozen=True, kw_only=True)
class Bars(Panel):
    """A value each, longest bar first to be seen."""

    width: int = 8
    type = "bargauge"
    instant = True

    def options(self) -> Json:
        return {
            "displayMode": "basic",
            "orientation": "horizontal",
            "valueMode": "color",
            "showUnfilled": True,
            "minVizHeight": 16,
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        }


@dataclass(frozen=True, kw_only=True)
class Table(Panel):
    """The present, a row each. `columns`: label name or query letter to column, in this order.

    `matrix` is (label of the columns, label of the rows) of one query instead; `row_link` then
    leads from a row's name. With several queries each must name its labels: rows of different
    metrics become one only where they agree in all labels, `__name__` included.
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    matrix: tuple[str, str] | None = None
    row_link: tuple[str, str] | None = None
    type = "table"
    instant = True

    def custom(self) -> Json:
        cell = {"type": "color-background" if self.mappings else "auto"}
        return {"align": "auto", "cellOptions": cell, "filterable": True}

    def options(self) -> Json:
        return {"showHeader": True, "cellHeight": "sm", "footer": {"show": False}}

    def more(self) -> Json:
        if self.matrix is not None:
            of_columns, of_rows = self.matrix
            options = {"columnField": of_columns, "rowField": of_rows, "valueField": "Value"}
            return {"transformations": [{"id": "groupingToMatrix", "options": options}]}
        names = [self._field(key) for key in self.columns]
        order = {name: index for index, name in enumerate(names)}
        titles = {self._field(key): one.title for key, one in self.columns.items()}
        organized = {"excludeByName": {}, "indexByName": order, "renameByName": titles}
        return {
            "transformations": [
                {"id": "merge", "options": {}},
                {"id": "filterFieldsByName", "options": {"include": {"names": names}}},
                {"id": "organize", "options": organized},
            ]
        }

    def overrides(self) -> list[Json]:
        found = []
        if self.matrix is not None and self.row_link is not None:
            of_columns, of_rows = self.matrix
            links = {"id": "links", "value": [link_json(*self.row_link)]}
            matcher = {"id": "byName", "options": f"{of_rows}\\{of_columns}"}
            found.append({"matcher": matcher, "properties": [links]})
        for one in self.columns.values():
            properties: list[Json] = []
            if one.unit:
                properties.append({"id": "unit", "value": one.unit})
            if one.link is not None:
                properties.append({"id": "links", "value": [link_json(*one.link)]})
            if properties:
                matched = {"id": "byName", "options": one.title}
                found.append({"matcher": matched, "properties": properties})
        return found

    def _field(self, key: str) -> str:
        """The name that Grafana gives to the column before it is renamed."""
        if len(key) > 1:
            return key
        return f"Value #{key}" if len(self.queries) > 1 else "Value"


def link_json(title: str, url: str) -> Json:
    return {"title": title, "url": url, "targetBlank": False}


def to_peer(peer: str) -> tuple[str, str]:
    """A link to one server's dashboard; `peer` is Grafana's expression for its name."""
    kept = "".join(
        f"&${{{name}:queryparam}}" for name in ("tempo", "cluster", "namespace", "job", "instance")
    )
    url = "/d/observant-host-peer?${datasource:queryparam}" + kept
    return f"Server {peer}", f"{url}&var-peer={peer}&${{__url_time_range}}"


def to_traces(title: str, traceql: str) -> tuple[str, str]:
    """A link to Explore with this TraceQL query, in the Tempo that the dashboard has chosen."""
    source = {"type": "tempo", "uid": "${tempo}"}
    asked = {"refId": "A", "datasource": source, "queryType": "traceql", "query": traceql}
    range_ = {"from": "${__from}", "to": "${__to}"}
    pane = {"datasource": "${tempo}", "queries": [asked], "range": range_}
    encoded = quote(json.dumps({"traces": pane}, separators=(",", ":")), safe="")
    panes = re.sub(r"%24%7B([\w.]+)%7D", r"${\1}", encoded)  # Grafana fills these in
    return title, f"/explore?schemaVersion=1&panes={panes}"
