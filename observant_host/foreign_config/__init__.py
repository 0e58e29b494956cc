"""Other people's JSON, read by a checked-in map; pure like `config`."""

from __future__ import annotations

from observant_host.foreign_config.reader import ForeignFile, fitting_name, places_of, read_foreign

__all__ = ["ForeignFile", "fitting_name", "places_of", "read_foreign"]
