"""How rarely a host that serves looks for garbage in cycles.

What is there once start-up is over stays to the end: modules, servers, their catalogues. Looking
through it again and again found nothing and stopped every call for up to 19 ms; set aside, the
longest collection is a fraction of one. Only ever by the command line, whose process is ours.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG: Final = 10_000
"""New objects that are still there before the young ones are looked through: half a millisecond of
work, some tens of calls in flight with all that is theirs."""
OLDER: Final = 20
"""Collections of one generation before the next older one is looked through too."""


def set_aside() -> None:
    """All that is there now is looked through no more."""
    gc.freeze()
    gc.set_threshold(YOUNG, OLDER, OLDER)
