"""Who may do what over the network: addresses, tokens, hosts and origins, one table of routes."""

from __future__ import annotations

from observant_host.decisions.http_door import is_loopback
from observant_host.service.access.addresses import Address, listeners, parse_address
from observant_host.service.access.hall import Hall
from observant_host.service.access.identify import Access
from observant_host.service.access.refused import Refused

__all__ = ["Access", "Address", "Hall", "Refused", "is_loopback", "listeners", "parse_address"]
