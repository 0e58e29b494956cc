"""What an outcome means outside: exit code, API status, and whose fault it is by default.

One table, so that the command line, the JSON API and the metrics can never disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.terms import OUTAGES, Cause, PeerState
from observant_host.errors import Delivery, Fault, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN_NAME_STATUS: Final = 404
"""The API status of `invalid` where the name does not exist; every other `invalid` is 400."""


NOTHING: Final = "nothing was executed"
PERHAPS: Final = "it may have been executed; do not simply repeat it"
HARMLESS: Final = "it may have been executed; it is declared idempotent, so it may be repeated"


class Verdict(msgspec.Struct, frozen=True):
    """`fault` is the default; what is known about the call may say more (see `fault_of_*`)."""

    exit_code: int
    api_status: int
    fault: Fault


VERDICTS: Final[Mapping[Outcome, Verdict]] = {
    "ok": Verdict(0, 200, "none"),
    "tool_error": Verdict(1, 200, "none"),
    "rpc_error": Verdict(1, 200, "peer"),
    "invalid": Verdict(2, 400, "caller"),
    "unavailable": Verdict(3, 503, "peer"),
    "timeout": Verdict(4, 504, "peer"),
    "cancelled": Verdict(130, 499, "caller"),
}


def exit_code(outcome: Outcome) -> int:
    return VERDICTS[outcome].exit_code


def api_status(outcome: Outcome, *, unknown: bool = False) -> int:
    """The HTTP status; `unknown` says that an `invalid` call named something that is not there."""
    if unknown and outcome == "invalid":
        return UNKNOWN_NAME_STATUS
    return VERDICTS[outcome].api_status


def fault_of_unavailable(state: PeerState, cause: Cause | None) -> Fault:
    """Whose fault it is that a server takes no calls.

    An outage is the peer's; where a person decides (policy, auth, config, disabled) it is policy's;
    without a cause the host itself is not ready (starting, stopped).
    """
    if state is PeerState.DISABLED:
        return "policy"
    if cause is None:
        return "host"
    return "peer" if cause in OUTAGES else "policy"


def certainty(
    outcome: Outcome,
    *,
    delivery: Delivery,
    refused: bool,
    begun: bool,
    acts: bool,
    harmless: bool,
) -> str:
    """What is certain about a failed call, for whoever decides whether to call again (often a
    model); "" where the error itself says it.

    `refused`: the server turned it away before it did anything. `begun`: it has answered an earlier
    request of this call. `acts`: it calls a tool, the only thing that may have effects; `harmless`:
    somebody says that this tool may be called twice.
    """
    without_result = outcome in ("unavailable", "timeout", "cancelled")
    if without_result and not begun and (delivery == "not_sent" or refused):
        return NOTHING
    unanswered = without_result and (begun or delivery == "sent_no_reply")
    unusable = outcome == "invalid" and delivery != "not_sent"
    if not acts or not (unanswered or unusable):
        return ""
    return HARMLESS if harmless else PERHAPS
