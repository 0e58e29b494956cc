"""The host: composition of every layer (`core`) and the library's front door (`door`)."""

from __future__ import annotations

from observant_host.host.door import Host
from observant_host.host.examiner import Examiner
from observant_host.host.loaded import load

__all__ = ["Examiner", "Host"]

load()
