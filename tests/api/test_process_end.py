"""A process that ends while something of the API is under way: at once, and without a word."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hyperpod_jlab

_SUBMIT = """
import asyncio, threading
import hyperpod_jlab
run = hyperpod_jlab.submit(command="echo one; sleep 30", project_files=False, run_id="mine")
"""

_CASES = {
    "iterator that is kept": "kept = iter(run.logs(follow=True)); print(next(kept))",
    "iterator in a cycle": "box = [iter(run.logs(follow=True))]; box.append(box); print(next(box[0]))",
    "iterator that was left": "for line in run.logs(follow=True):\n    print(line)\n    break",
    "threads that go on": """
lines = iter(run.logs(follow=True))
print(next(lines))
threading.Thread(target=lambda: list(run.logs(follow=True)), daemon=True).start()
threading.Thread(target=run.wait, daemon=True).start()
asyncio.run(asyncio.sleep(0.5))
""",
    "asynchronous iterator that is kept": """
kept = aiter(run.logs(follow=True))
async def first():
    print(await anext(kept))
asyncio.run(first())
""",
}


@pytest.mark.parametrize("code", _CASES.values(), ids=list(_CASES))
def test_the_process_ends_at_once_and_quietly(code: str) -> None:
    told = _SUBMIT + code
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=25)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("0|one\n")
    assert hyperpod_jlab.get("mine").state == "running"
