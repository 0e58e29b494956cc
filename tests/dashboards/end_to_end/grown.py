"""Puts processes that hold memory beside a server: `grown.py COPIES MIB ARGV...`.

The copies share their pages, as forks do, so that a group of 2.4 GiB costs the machine 300 MiB.
"""

import os
import sys
import time

copies, mib = int(sys.argv[1]), int(sys.argv[2])
held = bytearray(mib << 20)
for page in range(0, len(held), 4096):
    held[page] = 1
for _ in range(copies):
    if os.fork() == 0:
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)
os.execv(sys.argv[3], sys.argv[3:])
