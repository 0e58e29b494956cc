"""Tests of the host.

Hundreds of child processes and every worker start the same modules: bytecode is written also where
the environment says otherwise (container images often do), or each of them compiles them anew.
"""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
