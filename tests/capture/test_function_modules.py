"""Functions that need a module of the project, and functions with a cache: over the local cluster's own path, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import functools, pickle
import hyperpod_jlab, things

@functools.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def work():
    import multiprocessing
    found = [pickle.loads(pickle.dumps(things.Thing(1))).x]
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            found.append(pool.map(things.double, [3, 4]))
    return found

if __name__ == "__main__":
    assert hyperpod_jlab.submit(work).result() == [1, [6, 8], [6, 8]]
    assert hyperpod_jlab.submit(fib, args=(30,)).result() == 832040
    assert hyperpod_jlab.submit(lambda: fib(7)).result() == 13
"""


def test_modules_and_caches_work_as_at_home(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "things.py").write_text(
        "class Thing:\n    def __init__(self, x):\n        self.x = x\n\ndef double(x):\n    return 2 * x\n"
    )
    (project / "script.py").write_text(SCRIPT)
    folders = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("DATA", "STATE", "CACHE", "CONFIG")}
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=project,
        env={**os.environ, **folders},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
