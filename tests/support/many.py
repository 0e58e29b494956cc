"""Many cases of one promise in one test, which names every case that fails.

Running a test costs some milliseconds, which is far more than a look at one panel or one line of a
table: a test for each of hundreds of them would be most of what the default tier pays for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def for_each(cases: Mapping[str, tuple[Any, ...]]) -> Callable[..., Callable[[], None]]:
    """Make one test of a check that is called with each of the cases."""

    def made(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            failed = list(failures(check, cases.items()))
            assert cases
            assert not failed, "\n".join(failed)

        test.__name__, test.__doc__, test.__module__ = (
            *(check.__name__, check.__doc__),
            check.__module__,
        )
        return test

    return made


def failures(
    check: Callable[..., None], cases: Iterable[tuple[str, tuple[Any, ...]]]
) -> Iterable[str]:
    for name, values in cases:
        try:
            check(*values)
        except (AssertionError, LookupError) as error:
            yield f"{name}: {type(error).__name__}: {error}"
