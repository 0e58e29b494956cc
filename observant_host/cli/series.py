"""Single values out of what a host's `/metrics` shows, for commands that ask a running host."""

from __future__ import annotations

import re


def by_label(shown: bytes, name: str, label: str) -> dict[str, float]:
    """The values of a metric that has this one label, by the label's value.

    Source: Prometheus, exposition formats, text-based format.
    """
    series = re.compile(rf'^observant_host_{name}\{{{label}="([^"]*)"\}} (\S+)', re.MULTILINE)
    return {value: float(number) for value, number in series.findall(shown.decode())}
