"""How failures are told to agents: what a model should read, and what is an error."""

from __future__ import annotations

from typing import Any

import pytest

from observant_host.decisions.northbound import Refusal
from observant_host.decisions.northbound_errors import DETAILS, RESERVED, details, refusal_of
from observant_host.errors import (
    CallError,
    CallFacts,
    CallTimeout,
    InputRefused,
    InvalidCall,
    InvalidResult,
    NotAnswering,
    RateLimited,
    RpcError,
    Unavailable,
)

TOOL, READ = "tools/call", "resources/read"
FAILINGS: list[CallError] = [
    Unavailable("down"),
    NotAnswering("silent"),
    RateLimited("later", retry_after_s=3.0),
    CallTimeout("late", scope="call"),
    InvalidResult("odd"),
    InputRefused("asked"),
    InvalidCall("bad arguments"),
]


@pytest.mark.parametrize("error", FAILINGS, ids=lambda error: type(error).__name__)
def test_a_tools_failing_is_a_result_and_never_an_internal_error(error: CallError) -> None:
    assert refusal_of(error, method=TOOL) is None


@pytest.mark.parametrize("error", FAILINGS, ids=lambda error: type(error).__name__)
def test_what_has_no_error_result_fails_as_an_error_that_says_what_is_known(
    error: CallError,
) -> None:
    refusal = refusal_of(error, method=READ)
    assert refusal is not None
    if isinstance(error, InvalidCall):
        assert refusal == Refusal(-32602, "bad arguments")
    else:
        assert (refusal.code, refusal.status) == (-32603, 200)
        assert refusal.data[DETAILS]["error_type"] == error.error_type


@pytest.mark.parametrize("method", [TOOL, READ])
def test_an_unknown_name_is_an_error(method: str) -> None:
    error = InvalidCall("no tool is called x", unknown=True)
    assert refusal_of(error, method=method) == Refusal(-32602, "no tool is called x")


@pytest.mark.parametrize(
    ("code", "data", "told"),
    [
        (-32000, {"a": 1}, Refusal(-32000, "m", {"a": 1})),
        (-32602, None, Refusal(-32602, "m")),
        (-32603, None, Refusal(-32603, "m")),
        (7, None, Refusal(7, "m")),
        (-32002, {"uri": "x"}, Refusal(-32602, "m", {"uri": "x"})),
        (
            -32021,
            {"requiredCapabilities": {"roots": {}}},
            Refusal(-32021, "m", {"requiredCapabilities": {"roots": {}}}, 400),
        ),
        (-32021, None, Refusal(-32603, "m", {"code": -32021, "data": None})),
        (-32020, None, Refusal(-32603, "m", {"code": -32020, "data": None})),
        (-32022, None, Refusal(-32603, "m", {"code": -32022, "data": None})),
        (-32042, {"e": []}, Refusal(-32603, "m", {"code": -32042, "data": {"e": []}})),
        (0, {"code": "x"}, Refusal(-32603, "m", {"code": 0, "data": {"code": "x"}})),
    ],
)
def test_a_servers_error_passes_but_for_codes_that_mean_nothing_to_an_agent(
    code: int, data: Any, told: Refusal
) -> None:
    assert refusal_of(RpcError(code, "m", data), method=TOOL) == told


@pytest.mark.parametrize("code", RESERVED)
def test_no_reserved_code_goes_up_undefined(code: int) -> None:
    told = refusal_of(RpcError(code, "m"), method=TOOL)
    assert told is not None
    assert told.code == -32603


def test_an_error_without_words_gets_some() -> None:
    told = refusal_of(RpcError(-1, ""), method=TOOL)
    assert told is not None
    assert "error -1" in told.message


def test_the_details_are_words_of_the_closed_lists() -> None:
    limited = RateLimited("later", retry_after_s=3.0)
    limited.call = CallFacts("n", server="s", trace_id="t")
    assert details(limited) == {
        "error_type": "unavailable",
        "outcome": "unavailable",
        "delivery": "not_sent",
        "fault": "peer",
        "server": "s",
        "trace_id": "t",
        "retry_after_s": 3.0,
    }
    assert "server" not in details(Unavailable("down"))
