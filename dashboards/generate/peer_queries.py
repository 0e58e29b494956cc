"""What the rows of the server's dashboard have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dashboards.generate.panels import Lines, Query, to_traces
from dashboards.generate.promql import PEERS, query

if TYPE_CHECKING:
    from collections.abc import Sequence

OF_LINE: Final = 'span.observant_host.peer.name="${__field.labels.peer}"'
DECISIONS: Final = to_traces(
    "Its era decisions in Tempo", f'{{{OF_LINE} && name="observant_host.era.decide"}}'
)
LIVES: Final = to_traces(
    "Its restarts in Tempo", f'{{{OF_LINE} && name="observant_host.peer.restart"}}'
)
FAILED: Final = to_traces(
    "Its failed calls in Tempo",
    f'{{{OF_LINE} && name="observant_host.call" && span.observant_host.outcome!="ok"}}',
)
STREAMS: Final = to_traces(
    "Its lost streams in Tempo", f'{{{OF_LINE} && name="observant_host.subscription.lost"}}'
)


def one(text: str, legend: str = "{{peer}}", *, exemplars: bool = False) -> Query:
    return Query(expr=query(text, scope=PEERS), legend=legend, exemplars=exemplars)


def rates(metric: str, *labels: str, exemplars: bool = False) -> list[Query]:
    """A counter's rate by server and these labels."""
    legend = " ".join(("{{peer}}", *(f"{{{{{label}}}}}" for label in labels)))
    by = ", ".join(("peer", *labels))
    return [one(f"sum by ({by}) (rate(:{metric}[R]))", legend, exemplars=exemplars)]


def gauge(metric: str) -> list[Query]:
    return [one(f"sum by (peer, instance) (:{metric})", "{{peer}} on {{instance}}")]


def quantiles(bucket: str) -> list[Query]:
    return [
        one(
            f"histogram_quantile({q}, sum by (le, peer) (rate(:{bucket}[R])))",
            f"{{{{peer}}}} p{q * 100:g}",
            exemplars=q == 0.99,
        )
        for q in (0.5, 0.95, 0.99)
    ]


def quarter(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    unit: str = "short",
    stacked: bool = False,
    links: Sequence[tuple[str, str]] = (),
    width: int = 6,
) -> Lines:
    return Lines(
        title=title,
        description=description,
        queries=queries,
        unit=unit,
        stacked=stacked,
        links=links,
        width=width,
    )
