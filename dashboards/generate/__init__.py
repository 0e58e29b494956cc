"""Makes what is generated under `dashboards/`: dashboards for Grafana, a PrometheusRule, and
the list of spans that the Collector always keeps.

    python -m dashboards.generate      from the repository's root; writes the files anew

Queries are written against the host's own list of metrics, so that a dashboard cannot ask for a
metric or a label that nothing emits. The output is checked in: nobody needs this to use it.
"""
