"""What changed just before an incident: on the host, at the server, by a person's hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.incidents.episodes import SECOND, Episode
from observant_host.incidents.moments import (
    Acted,
    Configured,
    Decided,
    Lived,
    Moment,
    Restarted,
    Stalled,
    iso_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from observant_host.incidents.timeline import Timeline

BEFORE_NS: Final = 900 * SECOND
"""A quarter of an hour: a deployment and what it breaks."""
SHOWN: Final = 20


def changes_before(first: Episode, fell: Sequence[str], timeline: Timeline) -> list[str]:
    """Sentences, oldest first, each beginning with its moment; the server's own version last."""
    near = timeline.about(first.host, first.peer, until_ns=first.start_ns)
    told = list(_told(near, first.start_ns - BEFORE_NS))[-SHOWN:]
    versions = _versions(first)
    if versions:
        told.append(versions)
    if fell:
        told.append(f"in the same minutes on the same host also fell: {', '.join(fell)}")
    return told


def _told(near: Iterable[Moment], since_ns: int) -> Iterator[str]:
    config, build = "", ""
    for one in near:
        text = _text(one, config)
        if one.build and build and one.build != build:
            text = f"observant-host itself changed from {build} to {one.build}"
        build = one.build or build
        if isinstance(one, Configured) and one.successful:
            config = one.hash
        if text and one.at_ns >= since_ns:
            yield f"{iso_time(one.at_ns)} {text}"


def _text(one: Moment, config: str) -> str:
    match one:
        case Acted():
            why = f" ({one.reason})" if one.reason else ""
            return f"{one.principal or 'somebody'} did `{one.verb} {one.peer}`".rstrip() + why
        case Configured(successful=False):
            return "a new configuration was refused"
        case Configured():
            if config and config != one.hash:
                return f"the configuration changed from {config} to {one.hash}"
            return "" if config else f"the configuration {one.hash} was loaded"
        case Lived():
            return f"the host said: {one.what}" if one.what in _TOLD else ""
        case Restarted():
            code = f", exit code {one.exit_code}" if one.exit_code is not None else ""
            return f"its process or connection was replaced: {one.reason}{code}{_last(one.stderr)}"
        case Stalled():
            return f"the event loop stood still for {one.lag_ms / 1000:.1f} s"
        case _:
            return ""


_TOLD: Final = frozenset(
    {
        *("published", "listening", "stopping", "stopped", "guardian_lost"),
        *("sink_down", "sink_up", "crashed", "crashed_before"),
    }
)


def _last(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    return f"; its last words: {lines[-1].strip()[:200]}" if lines else ""


def _versions(first: Episode) -> str:
    before = first.before.server_version if first.before is not None else None
    after = _version_after(first)
    if before is None or after is None or before == after:
        return ""
    return f"the server's own version changed from {before} to {after}"


def _version_after(first: Episode) -> str | None:
    decisions: list[Decided] = [*first.decisions]
    if first.closed_by is not None:
        decisions.append(first.closed_by)
    return next((one.server_version for one in decisions if one.server_version), None)
