"""What must be reached, one line each: the tables that the benchmark prints and judges. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COLUMNS = {
    "metrics": "metrics only",
    "ratio": "ratio 0.01, record",
    "on": "fully on",
    "otlp": "and OTLP export",
}
"""State of telemetry to its heading. Fully on: every trace sampled, exemplars, the record kept; a
library's spans go through the SDK of the program around it, unless a row says otherwise."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """`figure` of `way` in `case`: as it is, as a ratio to that of `base` (its `base_figure`, where
    that has another name), or what it adds to it."""

    work: str
    against: str = ""
    state: str = ""
    case: str
    way: str
    figure: str
    base: str = ""
    base_figure: str = ""
    how: Literal["plain", "ratio", "added"] = "plain"
    limit: float
    at_least: bool = False
    unit: str = ""


def _ratios(
    work: str,
    against: str,
    limits: Mapping[str, float],
    *,
    case: str,
    figure: str,
    base: str,
    ways: Mapping[str, str] | None = None,
) -> Iterator[Target]:
    """`ways`: by state, where it is another one than the state's own."""
    for state, limit in limits.items():
        yield Target(
            work=work,
            against=against,
            state=state,
            case=case,
            way=(ways or {}).get(state, state),
            figure=figure,
            base=base,
            how="ratio",
            limit=limit,
        )


def _added(case: str, limits: Mapping[str, tuple[float, float]]) -> Iterator[Target]:
    """Milliseconds that a gateway adds to a direct client at 500 calls a second: p50 and p99."""
    behind = case.removeprefix("gateway-")
    for state, pair in limits.items():
        for share, limit in zip(("p50", "p99"), pair, strict=True):
            yield Target(
                work=f"gateway to {behind}, open loop at 500 calls/s: added p50, p99",
                against="direct bare client",
                state=state,
                case=case,
                way=state,
                figure=f"{share}_ms=500",
                base="direct",
                how="added",
                limit=limit,
                unit="ms",
            )


def _closed(
    state: str, calls_s: float, p50_ms: float, *, factor: float, slower: float
) -> Iterator[Target]:
    """`factor`: how many times the calls of another gateway; `slower`: how many times as long as a
    server that answers with constant bytes, which holds on a slower machine too."""
    shared = {"state": state, "case": "gateway-stdio", "way": state}
    work = "gateway to stdio, closed loop at 16: calls/s, p50"
    yield Target(work=work, figure="calls_s@16", limit=calls_s, at_least=True, unit="/s", **shared)
    yield Target(work=work, figure="p50_ms@16", limit=p50_ms, unit="ms", **shared)
    yield Target(
        work="gateway to stdio, closed loop at 16: p50",
        against="aiohttp with a constant answer",
        figure="p50_ms@16",
        base="static aiohttp app",
        how="ratio",
        limit=slower,
        **shared,
    )
    yield Target(
        work="gateway to stdio, closed loop at 16: calls/s",
        against="fastmcp's proxy",
        figure="calls_s@16",
        base="fastmcp proxy",
        how="ratio",
        limit=factor,
        at_least=True,
        **shared,
    )


OWN = {"ratio": "own-ratio", "on": "own"}
"""Of a host that is traced by itself, as `observant-host run` is, and not by its program's SDK."""

CALLS: tuple[Target, ...] = (
    *_ratios(
        "CPU per stdio call, 16 in flight",
        "mcp 2.3.0, untraced",
        {"metrics": 0.10, "ratio": 0.14, "on": 0.45, "otlp": 0.55},
        case="stdio",
        figure="cpu_us@16",
        base="mcp",
    ),
    *_ratios(
        "CPU per stdio call, 16 in flight",
        "bare asyncio loop",
        {"metrics": 2.2, "ratio": 3.2, "on": 11},
        case="stdio",
        figure="cpu_us@16",
        base="bare",
    ),
    *_ratios(
        "CPU per stdio call, 16 in flight, traced by the host itself",
        "mcp 2.3.0, untraced",
        {"ratio": 0.14, "on": 0.45},
        case="stdio",
        figure="cpu_us@16",
        base="mcp",
        ways=OWN,
    ),
    *_ratios(
        "CPU per stdio call, 16 in flight, traced by the host itself",
        "bare asyncio loop",
        {"ratio": 3.2, "on": 11},
        case="stdio",
        figure="cpu_us@16",
        base="bare",
        ways=OWN,
    ),
    *_ratios(
        "CPU per stdio call, one at a time",
        "mcp 2.3.0, untraced",
        {"metrics": 0.40, "on": 0.75},
        case="stdio",
        figure="cpu_us@1",
        base="mcp",
    ),
    *_ratios(
        "CPU per HTTP call (JSON), 16 in flight",
        "mcp 2.3.0, untraced",
        {"metrics": 0.13, "ratio": 0.16, "on": 0.23, "otlp": 0.26},
        case="http",
        figure="cpu_us@16",
        base="mcp",
    ),
    *_ratios(
        "CPU per HTTP call (JSON), 16 in flight",
        "bare aiohttp",
        {"metrics": 1.2, "on": 2.3},
        case="http",
        figure="cpu_us@16",
        base="bare",
    ),
    *_ratios(
        "CPU per HTTP call (JSON), 16 in flight, traced by the host itself",
        "mcp 2.3.0, untraced",
        {"ratio": 0.16, "on": 0.23},
        case="http",
        figure="cpu_us@16",
        base="mcp",
        ways=OWN,
    ),
    *_ratios(
        "CPU per HTTP call (JSON), 16 in flight, traced by the host itself",
        "bare aiohttp",
        {"on": 2.3},
        case="http",
        figure="cpu_us@16",
        base="bare",
        ways=OWN,
    ),
    *_added("gateway-stdio", {"metrics": (0.45, 1.2), "on": (0.6, 2.0), "otlp": (0.7, 3.0)}),
    *_added("gateway-http", {"metrics": (0.6, 1.6), "on": (0.75, 2.5)}),
    *_closed("metrics", 10_000, 3, factor=8, slower=1.8),
    *_closed("on", 5_000, 6, factor=4, slower=3.5),
)


FEW_THREADS = 0.2
"""A child: a pool of a few threads for all of them is not a thread for each."""


def _starting(peers: int) -> Iterator[Target]:
    case, work = f"start{peers}", f"{peers} stdio servers to ready"
    bare = "a bare loop that starts and lists the same"
    shared = {"case": case, "way": "ours"}
    yield Target(
        work=work, against=bare, figure="ready_ms", base="bare", how="ratio", limit=1.2, **shared
    )
    yield Target(work=f"{work}: loop stall", figure="stall_ms", limit=60, unit="ms", **shared)
    yield Target(
        work=f"{work}: loop stall, as `observant-host run` collects garbage",
        case=case,
        way="as_run",
        figure="stall_ms",
        limit=60,
        unit="ms",
    )
    yield Target(
        work=f"{work}: threads a child", figure="threads_each", limit=FEW_THREADS, **shared
    )


def _catalogue(work: str, against: str, figures: tuple[str, str], limit: float) -> Iterator[Target]:
    yield Target(
        work=f"10,000 tools: {work}",
        against=against,
        case="catalogue",
        way="ours",
        figure=figures[0],
        base="ours",
        base_figure=figures[1],
        how="ratio",
        limit=limit,
    )


REST: tuple[Target, ...] = (
    *_starting(50),
    *_starting(500),
    Target(
        work="resident memory with 50 servers",
        against="mcp 2.3.0",
        case="memory",
        way="ours",
        figure="memory_mib",
        base="mcp",
        how="ratio",
        limit=0.75,
    ),
    Target(
        work="import of the package, CPU",
        against="mcp 2.3.0",
        case="import",
        way="ours",
        figure="cpu_ms",
        base="mcp",
        how="ratio",
        limit=0.5,
    ),
    Target(
        work="16 MiB result over stdio, CPU",
        against="reading it without decoding",
        case="large-stdio",
        way="ours",
        figure="cpu_ms",
        base="bare",
        how="ratio",
        limit=1.8,
    ),
    Target(
        work="16 MiB result over stdio, CPU",
        against="mcp 2.3.0",
        case="large-stdio",
        way="ours",
        figure="cpu_ms",
        base="mcp",
        how="ratio",
        limit=0.05,
    ),
    Target(
        work="16 MiB result over stdio, memory",
        case="large-stdio",
        way="ours",
        figure="bodies",
        limit=2.2,
        unit="bodies",
    ),
    Target(
        work="16 MiB result through to HTTP, CPU",
        case="large-http",
        way="ours",
        figure="cpu_ms",
        limit=60,
        unit="ms",
    ),
    Target(
        work="16 MiB result through to HTTP, memory",
        case="large-http",
        way="ours",
        figure="bodies",
        limit=2.5,
        unit="bodies",
    ),
    *_catalogue("decode and merge", "orjson, the same bytes", ("all_ms", "parse_ms"), 2.5),
    *_catalogue(
        "merge again after one server's change",
        "a dict copy and the change",
        ("changed_ms", "copied_ms"),
        1.25,
    ),
    *_catalogue("look a name up", "a dict", ("lookup_ns", "dict_lookup_ns"), 3),
)

LINEAR = 1.25
"""What grows in proportion costs the same for each; a quarter is for noise."""


def _linear(work: str, case: str, ways: tuple[str, str], figures: tuple[str, str]) -> Target:
    """The many, of the first way and figure, beside the fewer of the second."""
    return Target(
        work=work,
        against="the same with fewer",
        case=case,
        way=ways[0],
        figure=figures[0],
        base=ways[1],
        base_figure=figures[1],
        how="ratio",
        limit=LINEAR,
    )


IN_FLIGHT = ("cpu_us@256", "cpu_us@16")
GROWTH: tuple[Target, ...] = (
    _linear(
        "CPU per stdio call, metrics only: 256 in flight, not 16",
        "growth-calls",
        ("metrics", "metrics"),
        IN_FLIGHT,
    ),
    _linear(
        "CPU per stdio call, fully on: 256 in flight, not 16",
        "growth-calls",
        ("on", "on"),
        IN_FLIGHT,
    ),
    _linear(
        "memory for each idle server: 200 servers, not 50",
        "growth-servers",
        ("200", "50"),
        ("kib_each", "kib_each"),
    ),
    _linear(
        "time of a scrape for each series: 30k, not 10k",
        "growth-scrape",
        ("30k", "10k"),
        ("us_each", "us_each"),
    ),
)

ALL = (*CALLS, *REST, *GROWTH)
