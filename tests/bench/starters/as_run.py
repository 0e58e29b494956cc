"""As `ours`, in a process that is set up as `observant-host run` sets up its own."""

import asyncio

from ours import main

from observant_host.cli.collecting import set_aside

set_aside()
asyncio.run(main())
