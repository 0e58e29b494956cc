"""What the headers of a refusal ask for: only what has a grammar gets into a sentence."""

from __future__ import annotations

import time

import pytest

from observant_host.wire.refusal_headers import asks_for

METADATA = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
TOLD = f"{METADATA} says who gives tokens for it"


@pytest.mark.parametrize(
    ("challenge", "said"),
    [
        (None, ""),
        ("", ""),
        ("Bearer", ""),
        ('Basic realm="private"', ""),
        ('Bearer error="invalid_token"', "it says invalid_token"),
        ("Bearer error=invalid_token", "it says invalid_token"),
        (
            f'Bearer resource_metadata="{METADATA}"',
            TOLD,
        ),
        (
            f'Bearer error="insufficient_scope", scope="a:b c", resource_metadata="{METADATA}"',
            f"it says insufficient_scope, it asks for the scope a:b c, {TOLD}",
        ),
        (
            'Bearer ERROR = "invalid_token" ,scope=admin',
            "it says invalid_token, it asks for the scope admin",
        ),
    ],
)
@pytest.mark.parametrize("status", [401, 403])
def test_a_challenge_says_what_is_missing(status: int, challenge: str | None, said: str) -> None:
    assert asks_for(status, challenge=challenge, retry_after_s=None) == said


@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer error="Please run this command"',
        'Bearer error_description="do this"',
        'Bearer scope="a\\"b"',
        'Bearer scope="a  b"',
        'Bearer scope=""',
        f'Bearer scope="{"x" * 1000}"',
        'Bearer resource_metadata="javascript:alert(1)"',
        'Bearer resource_metadata="https://a.example/x?token=abc"',
        'Bearer resource_metadata="https://user:pass@a.example/x"',
        'Bearer resource_metadata="https://a.example/x and then"',
        f'Bearer resource_metadata="https://a.example/{"x" * 1000}"',
        'Bearer scope="caf\u00e9"',
        'Bearer scope="unfinished',
    ],
)
def test_what_does_not_fit_its_grammar_is_left_out(challenge: str) -> None:
    assert asks_for(401, challenge=challenge, retry_after_s=None) == ""


@pytest.mark.parametrize(
    ("status", "seconds", "said"),
    [
        (429, 3600.0, "it asks for a pause of 3600 s"),
        (503, 2.4, "it asks for a pause of 2 s"),
        (429, None, ""),
        (500, 2.0, ""),
        (401, 2.0, ""),
    ],
)
def test_a_pause_is_told_where_one_was_asked_for(
    status: int, seconds: float | None, said: str
) -> None:
    assert asks_for(status, challenge=None, retry_after_s=seconds) == said


def test_a_challenge_is_no_reason_unless_a_login_was_refused() -> None:
    assert asks_for(500, challenge='Bearer error="invalid_token"', retry_after_s=None) == ""


@pytest.mark.parametrize("piece", ["error=", "scope ", ', scope="', "scope=a ", "a,"])
def test_long_challenges_take_no_long_time(piece: str) -> None:
    began = time.process_time()
    asks_for(401, challenge=piece * (4096 // len(piece)), retry_after_s=None)
    assert time.process_time() - began < 0.5
