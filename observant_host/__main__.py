"""`python -m observant_host` is the same as `observant-host`."""

from __future__ import annotations

from observant_host.cli.main import main

if __name__ == "__main__":
    main()
