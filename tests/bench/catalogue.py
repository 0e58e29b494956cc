"""The catalogue of many servers: to decode and merge it, to merge it again after one server's
change, to look a name up, and what it holds in memory.

python -m tests.bench.catalogue [SERVERS] [TOOLS]     default 100 x 100, a table

CPU time, the smallest of several rounds; each beside the least that could do the work: parsing the
same bytes without checking or keeping anything, copying a dict of that size, asking a dict.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.config import ToolFilter
from observant_host.decisions import merge as merging
from observant_host.decisions import sift
from observant_host.decisions.catalogue import Listing, PeerView
from observant_host.decisions.names import Grants
from observant_host.decisions.routes import find_tool
from observant_host.decisions.terms import PeerState
from observant_host.schema_check import forget_verdicts, input_schema_problem
from observant_host.wire.messages import parse_page
from tests.bench.starters.meter import rss_mib

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.decisions.merge import Merged

try:
    from orjson import loads as parse
except ImportError:
    parse = msgspec.json.decode

ROUNDS: Final = 7
LOOKUPS: Final = 100_000
SHARED: Final = 0.1
"""Of every server's tools have names that every other one has too."""


def answers(servers: int, tools: int) -> dict[str, bytes]:
    """Server name to its answer to `tools/list`, as an ordinary server would send it."""
    properties = {f"arg{n}": {"type": "string", "description": f"Argument {n}."} for n in range(5)}
    schema = {"type": "object", "properties": properties, "required": ["arg0"]}
    shared = [f"shared{n}" for n in range(int(tools * SHARED))]
    found = {}
    for number in range(servers):
        names = [*shared, *(f"p{number}_t{n}" for n in range(tools - len(shared)))]
        listed = [
            {
                "name": name,
                "description": f"Does {name} for peer {number}.",
                # each its own schema, as tools have: nothing is checked once for all
                "inputSchema": {**schema, "title": f"{name} of {number}"},
            }
            for name in names
        ]
        body = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private", "tools": listed}
        found[f"peer{number:03}"] = json.dumps(body, separators=(",", ":")).encode()
    return found


def decode(server: str, body: bytes) -> PeerView:
    """As a peer's listing comes to be."""
    page = parse_page(msgspec.Raw(body), "tools")
    assert not isinstance(page, str)
    tools = sift.sift_tools(
        server, page.items, tool_filter=ToolFilter(), schema_problem=input_schema_problem
    )
    listing = Listing(server, tools.kept, excluded=tools.excluded)
    return PeerView(server, True, PeerState.READY, None, "", True, listing)


def merged(views: list[PeerView], before: Merged | None = None) -> Merged:
    return merging.merge(
        views,
        policy="prefix",
        granted=before.grants if before else Grants(),
        now_s=1e9,
        startup_over=True,
        grace_s=300.0,
        before=before,
    )


def measured(servers: int = 100, tools: int = 100) -> dict[str, float]:
    """Milliseconds: parse_ms, decode_ms, merge_ms, dict_copy_ms, change_decode_ms, again_ms;
    nanoseconds: lookup_ns, dict_lookup_ns; MiB added: rss_mib; and body_mib, names."""
    bodies = answers(servers, tools)
    gc.collect()
    before_mib = rss_mib()
    first = merged([decode(server, bytes(bytearray(body))) for server, body in bodies.items()])
    gc.collect()
    added = rss_mib() - before_mib
    costs: dict[str, float] = {}

    def least(what: str, work: Callable[[], Any]) -> Any:
        took, found = _cpu(work)
        costs[what] = min(costs.get(what, took * 1e3), took * 1e3)
        return found

    views: list[PeerView] = []
    for _ in range(ROUNDS):
        least("parse_ms", lambda: [parse(body) for body in bodies.values()])
        forget_verdicts()
        views = least("decode_ms", lambda: [decode(*one) for one in bodies.items()])
        first = least("merge_ms", partial(merged, views))
        least("dict_copy_ms", partial(dict, first.catalogue.lookup))
    name = max(bodies, key=len)
    lists = [bodies[name].replace(b"_t1", b"_u1"), bodies[name]]
    for turn in range(2 * ROUNDS):
        view = least("change_decode_ms", partial(decode, name, lists[turn % 2]))
        views = [view if old.name == name else old for old in views]
        first = least("again_ms", partial(merged, views, first))
    names = random.choices(list(first.catalogue.lookup), k=LOOKUPS)
    return {
        **costs,
        "dict_lookup_ns": _each(first.catalogue.lookup.get, names),
        "lookup_ns": _each(lambda name: find_tool(first.catalogue, name), names),
        "rss_mib": added,
        "body_mib": sum(map(len, bodies.values())) / (1 << 20),
        "names": len(first.catalogue.tools),
    }


def _cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def _each(look: Callable[[str], Any], names: list[str]) -> float:
    def every() -> None:
        for name in names:
            look(name)

    return min(_cpu(every)[0] for _ in range(ROUNDS)) / LOOKUPS * 1e9


def ratios(found: dict[str, float]) -> dict[str, float]:
    """Each cost beside the least that could do the work."""
    return {
        "decode and merge / parse": (found["decode_ms"] + found["merge_ms"]) / found["parse_ms"],
        "merge again / copy of a dict": found["again_ms"] / found["dict_copy_ms"],
        "lookup / dict": found["lookup_ns"] / found["dict_lookup_ns"],
        "memory / bytes that came": found["rss_mib"] / found["body_mib"],
    }


def main(argv: list[str]) -> None:
    found = measured(*map(int, argv))
    print("| what | |\n|---|---|")
    for what, value in {**found, **ratios(found)}.items():
        print(f"| {what} | {value:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
