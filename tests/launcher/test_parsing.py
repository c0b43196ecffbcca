"""Making syntax trees in several threads, as submits at the same time do."""

from __future__ import annotations

import subprocess
import sys

from hyperpod_jlab.launcher.parsing import parse_with_retry

_MANY = """
import ast, gc, threading, time
from functools import partial
from hyperpod_jlab.launcher import assemble
from hyperpod_jlab.launcher.parsing import parse_with_retry

class Yielding:
    def __init__(self):
        self.me = self
    def __del__(self):
        time.sleep(0)

gc.set_threshold(10)
text = open(assemble.__file__).read()
failed = []

def work(depth):
    if depth:
        return work(depth - 1)
    for _ in range(60):
        Yielding()
        try:
            parse_with_retry(partial(ast.parse, text))
        except SystemError as error:
            failed.append(error)

threads = [threading.Thread(target=work, args=(7 * number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(failed))
"""


def test_threads_do_not_disturb_each_other():
    done = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0\n"


def test_a_stumble_is_tried_again():
    answers = iter([SystemError("AST constructor recursion depth mismatch"), None])

    def parse() -> str:
        if (error := next(answers)) is not None:
            raise error
        return "tree"

    assert parse_with_retry(parse) == "tree"
