"""Every reason in words, still with places for names, codes, revisions and durations.

Source: the texts are this host's own; what each reason means is in `decisions.terms`.
"""

from __future__ import annotations

from typing import Final

from observant_host.decisions.terms import Reason

_ALLOW: Final = (
    "If you know that it is an old server, add `allow_legacy = true` to {table}, or run"
    " `observant-host probe {server} --suggest-legacy` to see the exact lines."
)
_LOOK: Final = "Run `observant-host explain {server}` to see what it sent."
_UPDATE: Final = "Update the server, or this host. " + _LOOK
_AS_BEFORE: Final = (
    "If it was really replaced by an old one, run `observant-host allow {server}`; otherwise bring"
    " the modern version back."
)

SENTENCES: Final[dict[Reason, str]] = {
    Reason.DISCOVER_OK: "{server} is modern and speaks {chosen}.",
    Reason.MODERN_ERROR_RETRY: "{server} is modern but refused {offered}; asking again with"
    " {chosen}.",
    Reason.MODERN_ERROR_UNFIXABLE: "{server} is modern but refuses our requests{code}, and nothing"
    " that this host could change would help. " + _UPDATE,
    Reason.NO_MUTUAL_VERSION: "{server} is modern but speaks {supported}, while this host speaks"
    " {ours}. " + _UPDATE,
    Reason.LEGACY_ONLY_ADVERTISED: "{server} answers like a modern server but offers only"
    " {supported}, while this host speaks {ours} with such servers; no option changes that. Update"
    " the server, or switch off its modern side if it has one.",
    Reason.LATE_MODERN_EVIDENCE: "{server} proved to be modern after it had been taken for an old"
    " server; it is started afresh and asked again. Raise `probe_timeout_s` in {table} so that it"
    " has time to answer, and remove its `allow_legacy`.",
    Reason.INITIALIZE_OK: "{server} is an old server and speaks {chosen}, as `allow_legacy`"
    " permits.",
    Reason.AMBIGUOUS_TIMEOUT: "{server} did not answer server/discover{within}. It may be slow or"
    " old, and silence proves neither; a late answer still counts. If it is slow, raise"
    " `probe_timeout_s` in {table}. " + _ALLOW,
    Reason.AMBIGUOUS_CLOSED: "{server} ended before it answered server/discover{problem}. Check its"
    " command with `observant-host doctor`. " + _ALLOW,
    Reason.AMBIGUOUS_ERROR: "{server} answered server/discover with an error{code} that proves no"
    " era. " + _ALLOW,
    Reason.AMBIGUOUS_EMPTY: "{server} answered server/discover with an empty result, which proves"
    " no era. " + _ALLOW,
    Reason.AMBIGUOUS_MALFORMED: "{server} gave no valid answer to server/discover{problem}. Check"
    " that its command starts an MCP server. " + _ALLOW,
    Reason.LEGACY_PROBE_TIMEOUT: "{server} gave no modern answer, and none to initialize{within}."
    " If it is slow to start, raise `probe_timeout_s` and"
    " `legacy_probe_timeout_ms` in {table}; check its command with `observant-host doctor`.",
    Reason.LEGACY_PROBE_ERROR: "{server} answered initialize with an error{code}. " + _LOOK,
    Reason.LEGACY_PROBE_INVALID: "{server} gave no valid answer to initialize{problem}. Update the"
    " server. " + _LOOK,
    Reason.LEGACY_PROBE_CLOSED: "{server} ended before it answered initialize{problem}. Check its"
    " command with `observant-host doctor`.",
    Reason.LEGACY_UNSUPPORTED_REVISION: "{server} answered initialize with {supported}, but only"
    " {allowed} may be used with it. If that is one of {legacy}, add it to `allow_legacy` in"
    " {table}; otherwise update the server.",
    Reason.WAS_MODERN: "{server} was modern before and now gives no modern answer{code}{problem},"
    " so it was not asked to go back to an old protocol. " + _AS_BEFORE,
    Reason.ALLOWANCE_EXPIRED: "{server} gave no modern answer{code}{problem}, and its permission"
    " to use an old protocol ended{expired}. Set a later `legacy_expires` in {table}, or run"
    " `observant-host allow {server}`.",
    Reason.ALLOWANCE_MISMATCH: "{server} gave no modern answer{code}{problem}, and its permission"
    " to use an old protocol is for another command: its fingerprint changed. If the change was"
    " meant, update `legacy_fingerprint` in {table}, or run `observant-host allow {server}`.",
    Reason.AUTH_REQUIRED: "{server} wants a login{code}{problem}. Give it credentials that work:"
    " `headers` of {table}, or a `headers_command` that prints them.",
    Reason.FORBIDDEN: "{server} refused these credentials{code}{problem}. Check `headers` in"
    " {table} and the rights of that account.",
    Reason.RATE_LIMITED: "{server} asks for fewer requests{code}{problem}; it is asked again later"
    " by itself. If that lasts, run `observant-host status {server}`.",
    Reason.UNREACHABLE: "{server} cannot be reached{problem}. Check its `url` in {table} and the"
    " network with `observant-host doctor`; it is asked again by itself.",
    Reason.HTTP_UNAVAILABLE: "{server} answers, but not as an MCP server today{code}{problem}; it"
    " is asked again by itself. " + _LOOK,
    Reason.SPAWN_FAILED: "{server} could not be started{problem}. Check `command` and `cwd` in"
    " {table} with `observant-host doctor`.",
    Reason.CONFIG_INVALID: "{server} cannot be used as it is configured{problem}. Run"
    " `observant-host config check`.",
}

EXPECT_MODERN: Final = (
    "{server} gives no modern answer{code}{problem}, and `expect_era` in {table} forbids any other."
    ' If it really is an old server, remove `expect_era = "modern"`; otherwise bring the modern'
    " version back."
)
OUTAGE: Final = (
    "{server} did not answer server/discover{within}. It is known to be modern, so this is an"
    " outage and no reason to try an old protocol; it is asked again by itself. Check it with"
    " `observant-host doctor`, and raise `probe_timeout_s` in {table} if it is merely slow."
)
AFTER_EVIDENCE: Final = (
    "{server} showed itself modern and then gave no usable answer to server/discover"
    "{code}{problem}; it is asked again by itself. " + _LOOK
)


# Over HTTP there is no command to look at, but an address.

_ENDPOINT: Final = "Check that its `url` in {table} is that of its MCP endpoint. "

OVER_HTTP: Final[dict[Reason, str]] = {
    Reason.LATE_MODERN_EVIDENCE: "{server} proved to be modern after it had been taken for an old"
    " server; it is asked afresh. Remove `allow_legacy` from {table}.",
    Reason.AMBIGUOUS_ERROR: "{server} answered server/discover with an error{code} that proves no"
    " era. " + _ENDPOINT + _ALLOW,
    Reason.AMBIGUOUS_EMPTY: "{server} answered server/discover with nothing{code}, which proves no"
    " era. " + _ENDPOINT + _ALLOW,
    Reason.AMBIGUOUS_MALFORMED: "{server} gave no valid answer to server/discover{code}{problem}. "
    + _ENDPOINT
    + _ALLOW,
    Reason.LEGACY_PROBE_TIMEOUT: "{server} gave no modern answer, and none to initialize{within}."
    " If it is slow, raise `legacy_probe_timeout_ms` in {table}; check its `url` with"
    " `observant-host doctor`.",
    Reason.LEGACY_PROBE_ERROR: "{server} answered initialize with an error{code}. "
    + _ENDPOINT
    + "An HTTP+SSE server needs `allow_legacy` with 2024-11-05. "
    + _LOOK,
    Reason.LEGACY_PROBE_INVALID: "{server} gave no valid answer to initialize{code}{problem}. "
    + _ENDPOINT
    + _LOOK,
    Reason.LEGACY_PROBE_CLOSED: "{server} broke off before it answered initialize{problem}. Check"
    " its `url` in {table} with `observant-host doctor`; it is asked again by itself.",
    Reason.ALLOWANCE_MISMATCH: "{server} gave no modern answer{code}{problem}, and its permission"
    " to use an old protocol is for another address: its fingerprint changed. If the change was"
    " meant, update `legacy_fingerprint` in {table}, or run `observant-host allow {server}`.",
}

NO_SSE: Final = (
    "{server} gave no HTTP+SSE stream{code}{problem}{within}. " + _ENDPOINT + "With"
    ' `transport = "sse"` that is the address of the stream; a newer server needs no `transport`.'
)
SILENT: Final = (
    "{server} did not answer server/discover{within}. Over HTTP that is an outage and no sign of an"
    " old server; it is asked again by itself. Raise `probe_timeout_s` in {table} if it is merely"
    " slow, and check its `url` with `observant-host doctor`."
)
ELSEWHERE: Final = (
    "{server} sends our requests to another address{problem}, which is not followed. If you trust"
    " that address, set `url` in {table} to it."
)
