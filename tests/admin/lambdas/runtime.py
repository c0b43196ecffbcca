"""What Lambda's runtime does, in a Python of its own that sees the package and the standard library only.

``python -I -S runtime.py PACKAGE HANDLER SECONDS``: the event comes on stdin, the result goes to stdout's last line, and logs before it. The
process ends without a word when the seconds are over, as Lambda ends it.
"""

import importlib
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


class Context:
    """As Lambda's: what handlers may ask for."""

    aws_request_id = "11111111-2222-4333-8444-555555555555"
    function_name = "wiring"
    log_stream_name = "2026/11/22/[$LATEST]0123456789abcdef"

    def __init__(self, seconds):
        self._end = time.monotonic() + seconds

    def get_remaining_time_in_millis(self):
        return max(0, int((self._end - time.monotonic()) * 1000))


def main():
    package, name, seconds = sys.argv[1:]
    sys.path.insert(0, package)
    root = logging.getLogger()
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("[%(levelname)s]\t%(message)s"))
    root.addHandler(handler)  # Lambda leaves the level as it is: WARNING
    began = time.monotonic()
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    imported = time.monotonic() - began
    event = json.load(sys.stdin)
    signal.setitimer(signal.ITIMER_REAL, float(seconds))
    told: dict[str, Any] = {"imported": imported, "outside": []}
    try:
        told["result"] = found(event, Context(float(seconds)))
    except BaseException as error:
        told["error"] = {"errorType": type(error).__name__, "errorMessage": str(error)}
    paths = (getattr(one, "__file__", None) for one in list(sys.modules.values()))
    known = (package, sys.base_prefix, str(Path(os.__file__).parent))
    told["outside"] = sorted(path for path in paths if path and not path.startswith(known))
    sys.stdout.flush()
    print("\n" + json.dumps(told), flush=True)
    os._exit(0)  # Lambda freezes what still runs


main()
