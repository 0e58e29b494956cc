"""Long runs: python -m tests.soak KIND; exit code 1 where a promise broke."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from tests.soak.chaos import Run
from tests.soak.doors import Doors
from tests.soak.kills import Kills
from tests.soak.many import many
from tests.soak.replicas import Replicas


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    chaos = kinds.add_parser("chaos", help="30 servers that go wrong, 64 callers that count")
    chaos.add_argument("--seconds", type=float, default=600.0)
    chaos.add_argument("--calm", type=float, default=20.0, help="seconds before and after")
    chaos.add_argument("--seed", type=int, default=1)
    kills = kinds.add_parser("kills", help="kill and restart cycles over a pool")
    kills.add_argument("--cycles", type=int, default=10_000)
    peers = kinds.add_parser("many", help="many servers in one host, figures")
    peers.add_argument("--peers", type=int, default=200)
    doors = kinds.add_parser("doors", help="agents at the door of one host")
    doors.add_argument("--clients", type=int, default=200)
    doors.add_argument("--seconds", type=float, default=300.0)
    replicas = kinds.add_parser("replicas", help="two hosts behind nginx, one of them killed")
    replicas.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    match given.kind:
        case "chaos":
            return _chaos(given)
        case "doors":
            at_doors = Doors(clients=given.clients, seconds=given.seconds)
            asyncio.run(at_doors.run())
            print("\n".join(at_doors.report))
            return _told(at_doors.failures)
        case "replicas":
            behind = Replicas(seconds=given.seconds)
            asyncio.run(behind.run())
            print("\n".join(behind.report))
            return _told(behind.failures)
        case "kills":
            run = Kills(given.cycles)
            asyncio.run(run.run())
            return _told(run.failures)
        case _:
            found = asyncio.run(many(given.peers))
            print(json.dumps(found, indent=1))
            return 1 if found["touched"] or found["not_ready"] else 0


def _chaos(given: argparse.Namespace) -> int:
    run = Run(seconds=given.seconds, calm_s=given.calm, seed=given.seed)
    print(f"chaos with seed {given.seed} for {given.seconds:.0f} s …", flush=True)
    asyncio.run(run.run())
    print("\n".join(run.report))
    return _told(run.failures + run.slow)


def _told(failures: list[str]) -> int:
    print("\n".join(f"BROKEN: {one}" for one in failures) or "every promise held")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
