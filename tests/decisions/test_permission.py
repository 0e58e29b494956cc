"""May a server be sent `initialize`: people, dates, fingerprints and memory."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from observant_host.config import EraPolicy
from observant_host.decisions.era import Permission
from observant_host.decisions.permission import (
    CommandAllowance,
    Remembered,
    Verdict,
    end_of_day,
    permission,
)
from observant_host.wire.revisions import LEGACY

PRINT = "sha256:now"
OTHER = "sha256:then"
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()
ALL = EraPolicy(allow_legacy=LEGACY)
NOTHING = Remembered()


def judge(
    policy: EraPolicy = ALL,
    remembered: Remembered = NOTHING,
    *,
    remember_modern: bool = True,
    now_s: float = NOW,
) -> Verdict:
    return permission(
        policy, PRINT, remembered=remembered, remember_modern=remember_modern, now_s=now_s
    )


def allowed(fingerprint: str = PRINT, until: float = NOW + 1) -> Remembered:
    return Remembered(allowance=CommandAllowance(fingerprint, until))


def test_without_an_allowance_nothing_is_permitted() -> None:
    assert judge(EraPolicy()) == Verdict(permission=Permission.NONE, proven=False)


def test_the_file_grants_exactly_the_revisions_it_names() -> None:
    verdict = judge(EraPolicy(allow_legacy=("2025-06-18",)))
    assert (verdict.permission, verdict.revisions) == (Permission.GRANTED, ("2025-06-18",))
    assert (verdict.expires, verdict.unexpected) == (None, False)


def test_an_allowance_holds_until_the_end_of_its_last_day_utc() -> None:
    policy = EraPolicy(allow_legacy=LEGACY, legacy_expires=date(2026, 11, 29))
    end = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
    assert end_of_day(date(2026, 11, 29)) == end
    before = judge(policy, now_s=end - 0.001)
    assert (before.permission, before.expires) == (Permission.GRANTED, end)
    assert judge(policy, now_s=end).permission is Permission.EXPIRED


def test_a_fingerprint_in_the_file_must_match() -> None:
    matching = EraPolicy(allow_legacy=LEGACY, legacy_fingerprint=PRINT)
    assert judge(matching).permission is Permission.GRANTED
    changed = EraPolicy(allow_legacy=LEGACY, legacy_fingerprint=OTHER)
    assert judge(changed).permission is Permission.MISMATCH


def test_allow_by_command_grants_every_revision_where_the_file_grants_none() -> None:
    verdict = judge(EraPolicy(), allowed())
    assert (verdict.permission, verdict.revisions) == (Permission.GRANTED, LEGACY)
    assert verdict.expires == NOW + 1


@pytest.mark.parametrize(
    ("remembered", "expected"),
    [(allowed(OTHER), Permission.MISMATCH), (allowed(until=NOW), Permission.EXPIRED)],
)
def test_an_allowance_by_command_ends_with_its_fingerprint_or_its_time(
    remembered: Remembered, expected: Permission
) -> None:
    assert judge(EraPolicy(), remembered).permission is expected


def test_the_later_of_two_standing_allowances_counts() -> None:
    policy = EraPolicy(allow_legacy=LEGACY, legacy_expires=date(2026, 11, 29))
    assert judge(policy, allowed(until=NOW + 10**7)).expires == NOW + 10**7
    assert judge(ALL, allowed()).expires is None
    expired = EraPolicy(allow_legacy=LEGACY, legacy_expires=date(2020, 1, 1))
    assert judge(expired, allowed()).expires == NOW + 1


def test_a_server_proven_modern_is_refused_and_its_silence_is_an_outage() -> None:
    verdict = judge(remembered=Remembered(proven_modern=True))
    assert (verdict.permission, verdict.proven) == (Permission.REFUSED, True)


def test_without_an_allowance_memory_only_makes_silence_an_outage() -> None:
    verdict = judge(EraPolicy(), Remembered(proven_modern=True))
    assert (verdict.permission, verdict.proven) == (Permission.NONE, True)


def test_memory_that_only_alerts_allows_a_downgrade_as_unexpected_but_never_for_silence() -> None:
    verdict = judge(remembered=Remembered(proven_modern=True), remember_modern=False)
    assert verdict.permission is Permission.GRANTED
    assert (verdict.proven, verdict.unexpected) == (True, True)


@pytest.mark.parametrize("remember_modern", [True, False])
def test_nothing_overrules_expect_era_modern(remember_modern: bool) -> None:
    policy = EraPolicy(allow_legacy=LEGACY, expect_era="modern")
    verdict = judge(policy, allowed(), remember_modern=remember_modern)
    assert (verdict.permission, verdict.proven) == (Permission.REFUSED, True)
