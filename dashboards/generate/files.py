"""Files made out of other files: text in, text out, so that comments stay."""

from __future__ import annotations

import re
from typing import Final

from observant_host.telemetry.rules import DECISION_SPANS

RULE: Final = """\
# Generated from dashboards/prometheus/{{rules,alerts}}.yaml by `python -m dashboards.generate`.
# The Operator's Prometheus must select it: add the labels that yours asks for.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: observant-host
  labels:
    app.kubernetes.io/name: observant-host
spec:
  groups:
{groups}"""

_MARKED: Final = re.compile(
    r"(?P<indent> *)# generated: decisions\n.*?(?P<end> *# end generated\n)", re.DOTALL
)


def prometheus_rule(*rule_files: str) -> str:
    """The groups of these files, in one resource."""
    groups = "".join(_indented(text.partition("\ngroups:\n")[2]) for text in rule_files)
    return RULE.format(groups=groups)


def _indented(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    return "".join(f"  {line}\n" if line.strip() else "\n" for line in lines)


def collector(text: str) -> str:
    """`text` with a condition for each span that no sampling may touch."""

    def listed(match: re.Match[str]) -> str:
        indent = match["indent"]
        lines = "".join(f'{indent}- name == "{span}"\n' for span in sorted(DECISION_SPANS))
        return f"{indent}# generated: decisions\n{lines}{match['end']}"

    return _MARKED.sub(listed, text)
