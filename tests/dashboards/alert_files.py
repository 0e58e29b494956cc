"""The checked-in rules, alerts and runbooks as tests read them, and their windows made short.

`python -m tests.dashboards.alert_files FOLDER FACTOR` writes rules.yaml and alerts.yaml with every
duration divided by FACTOR into FOLDER, to try them against a host within minutes.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2] / "dashboards"
RULES = ROOT / "prometheus/rules.yaml"
ALERTS = ROOT / "prometheus/alerts.yaml"
TESTS = ROOT / "prometheus/tests"
RUNBOOKS = ROOT / "runbooks"
PREFIX = "ObservantHost"

COMING = {"PinDrift": ("observant_host_pin_drift",)}
"""Alerts that are not there yet, with the metrics that they wait for: nothing emits those."""

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SHORTEST_S = 4
"""No range gets shorter: four scrapes of a second each, or `rate` has too little to go by."""


class Alert(NamedTuple):
    """One rule of alerts.yaml. `name` is without the prefix."""

    name: str
    expr: str
    labels: dict[str, str]
    annotations: dict[str, str]

    @property
    def runbook(self) -> Path:
        return RUNBOOKS / f"{PREFIX}{self.name}.md"


@cache
def alerts() -> tuple[Alert, ...]:
    """Every rule: an alert that has two severities is there twice."""
    return tuple(
        Alert(rule["alert"].removeprefix(PREFIX), rule["expr"], rule["labels"], rule["annotations"])
        for group in yaml.safe_load(ALERTS.read_text())["groups"]
        for rule in group["rules"]
    )


@cache
def names() -> list[str]:
    """Each alert once, in the order of the file."""
    return list(dict.fromkeys(one.name for one in alerts()))


@cache
def recorded() -> dict[str, list[str]]:
    """Each recorded series with its expressions."""
    found: dict[str, list[str]] = {}
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            found.setdefault(rule["record"], []).append(rule["expr"])
    return found


@cache
def promtool_tests() -> list[tuple[str, dict[str, Any]]]:
    """(file, test) of every promtool test."""
    return [
        (file.name, test)
        for file in sorted(TESTS.glob("*.yaml"))
        for test in yaml.safe_load(file.read_text())["tests"]
    ]


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a runbook in one language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def queries(text: str) -> list[str]:
    """A runbook's PromQL, one a line, with names for SERVER and HOST."""
    lines = [line for block in blocks(text, "promql") for line in block.splitlines()]
    return [line.replace("SERVER", "github").replace("HOST", "a:8700") for line in lines if line]


def shortened(text: str, factor: float) -> str:
    """Rules or alerts with every range, offset, `for`, `keep_firing_for` and number of seconds
    (written as `N * 60` or `N * 3600`) divided by `factor`. Names, labels and words stay."""

    def seconds(amount: str, unit: str) -> int:
        return int(max(SHORTEST_S, float(amount) * UNITS[unit] / factor))

    text = re.sub(r"\[(\d+)([smhd])\]", lambda m: f"[{seconds(m[1], m[2])}s]", text)
    text = re.sub(r"offset (\d+)([smhd])", lambda m: f"offset {seconds(m[1], m[2])}s", text)
    text = re.sub(
        r"(?m)^( +(?:keep_firing_)?for: )(\d+)([smhd])$",
        lambda m: f"{m[1]}{max(1, int(float(m[2]) * UNITS[m[3]] / factor))}s",
        text,
    )
    return re.sub(r"\* (3600|60)\b", lambda m: f"* {float(m[1]) / factor:g}", text)


def table() -> str:
    """Every alert as the README shows it."""
    lines = ["| alert | severity | whose | says |", "|---|---|---|---|"]
    for name in names():
        own = [one for one in alerts() if one.name == name]
        severities = ", ".join(dict.fromkeys(one.labels["severity"] for one in own))
        path = own[0].runbook.relative_to(ROOT.parent)
        summary = own[0].annotations["summary"]
        lines.append(
            f"| [`{name}`]({path}) | {severities} | {own[0].labels['owner']} | {summary} |"
        )
    waiting = ", ".join(f"`{name}`" for name in COMING)
    lines += ["", f"Not there yet, since nothing emits what to watch: {waiting}."]
    return "\n".join(lines)


def main(folder: str, factor: str) -> None:
    for file in (RULES, ALERTS):
        (Path(folder) / file.name).write_text(shortened(file.read_text(), float(factor)))


if __name__ == "__main__":
    main(*sys.argv[1:])
