"""Runs a notebook's cells, one after the other, in this module's namespace.

In a job this file is ``code/main.py``. Worker processes that are started by spawn or forkserver import it again; the runner then
gives them the notebook's definitions without running its work a second time.
"""

import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    runner = importlib.import_module("hyperpod_runtime.notebook")
finally:
    del sys.path[0]

runner.start(globals())
