"""Calls a function that travelled by value. In a job this file is ``code/main.py``.

Worker processes that are started by spawn or forkserver import it again: they get the function's definitions, and nothing is called.
"""

import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    runner = importlib.import_module("hyperpod_runtime.function")
finally:
    del sys.path[0]

runner.start(globals())
