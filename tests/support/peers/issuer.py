"""A credential command, as people write them (standard library only).

Options: --state FILE (counts runs) · --print TEXT ("{n}" is the number of this run) · --status N ·
--stderr TEXT · --sleep S · --flood BYTES · --stdin yes (prints what stdin held) ·
--daemon yes (leaves a process behind that holds its stdout)
"""

import os
import subprocess
import sys
import time

opt = dict(zip((a.removeprefix("--") for a in sys.argv[1::2]), sys.argv[2::2], strict=True))
number = 1
if "state" in opt:
    with open(opt["state"], "a") as file:
        file.write("x")
    number = os.path.getsize(opt["state"])
time.sleep(float(opt.get("sleep", 0)))
sys.stderr.write(opt.get("stderr", ""))
sys.stderr.flush()
if "flood" in opt:
    sys.stdout.write("x" * int(opt["flood"]))
if "stdin" in opt:
    sys.stdout.write(f"X-Stdin: {len(sys.stdin.read())} bytes\nX-Home: {os.environ.get('HOME')}\n")
sys.stdout.write(opt.get("print", "").replace("{n}", str(number)))
sys.stdout.flush()
if "daemon" in opt:
    subprocess.Popen(["sleep", "20"])
os._exit(int(opt.get("status", 0)))
