"""What Lambda's runtime does, in a Python of its own that sees the package and the standard library only.

``python -I -S runtime.py PACKAGE``: loads the package as Lambda does when it makes an instance of a function. Then each line on stdin is an
invocation, in JSON, which gets a process of its own that has all of that loaded: ``handler``, ``event``, ``seconds``, ``environment``, and
``output``, the file for its logs, whose last line is the result. The process ends without a word when the seconds are over, as Lambda ends it.
A line on stdout says how it ended.
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


def load(package):
    sys.path.insert(0, package)
    root = logging.getLogger()
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("[%(levelname)s]\t%(message)s"))
    root.addHandler(handler)  # Lambda leaves the level as it is: WARNING
    began = time.monotonic()
    for name in ("custom_resource", "new_profile", "reconcile"):
        importlib.import_module(f"hyperpod_jlab.admin.lambdas.{name}")
    imported = time.monotonic() - began
    importlib.import_module("boto3")  # the first request of each handler would
    return imported


def invoke(package, imported, handler, event, seconds, environment):
    os.environ.update(environment)
    module, _, function = handler.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    told: dict[str, Any] = {"imported": imported, "outside": []}
    try:
        told["result"] = found(event, Context(seconds))
    except BaseException as error:
        told["error"] = {"errorType": type(error).__name__, "errorMessage": str(error)}
    paths = (getattr(one, "__file__", None) for one in list(sys.modules.values()))
    known = (package, sys.base_prefix, str(Path(os.__file__).parent))
    told["outside"] = sorted({path for path in paths if path and not path.startswith(known)})
    sys.stdout.flush()
    print("\n" + json.dumps(told), flush=True)
    os._exit(0)  # Lambda freezes what still runs


def main():
    (package,) = sys.argv[1:]
    imported = load(package)
    for line in sys.stdin:
        asked = json.loads(line)
        output = os.open(asked.pop("output"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        process = os.fork()
        if process == 0:
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            invoke(package, imported, **asked)
        os.close(output)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


main()
