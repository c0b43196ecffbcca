"""Worker processes: what fork, spawn and forkserver workers know of the notebook, and that its work is done once."""

from __future__ import annotations

import textwrap

import pytest

from hyperpod_jlab.capture.runtime import replay
from tests.capture.bundles import Laboratory

pytestmark = pytest.mark.local

METHODS = ("fork", "spawn", "forkserver")


def cell(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


SETTING = cell("""
    from __future__ import annotations
    import multiprocessing as mp, os, sys
    from collections import namedtuple
    from enum import Enum
    from pathlib import Path
    print("side effect", flush=True)
    FACTOR = 2 * 3
    ROOT = Path("data")
    Point = namedtuple("Point", "x y")
    class Color(Enum):
        RED = 1
    try:
        import no_such_module
    except ImportError:
        no_such_module = None
        print("handled", flush=True)
""")

MADE = cell("""
    def build():
        print("work", flush=True)
        return {"a": FACTOR}
    table = build()
    words = []
    for word in "x y z".split():
        words.append(word)
    class Item:
        def __init__(self, n: Unknown): self.n = n
        def __reduce__(self): return (Item, (self.n,))
    special = Item(9)
    def job(n):
        return (n * FACTOR, table["a"], words, special.n, str(ROOT), Color.RED.name, Point(1, n).y, no_such_module, later(n))
    def later(n: NotDefinedAnywhere):
        return -n
""")


@pytest.mark.parametrize("method", METHODS)
def test_functions_of_cells_run_in_workers(lab: Laboratory, method: str):
    done = lab.run(SETTING, MADE, f"with mp.get_context({method!r}).Pool(2) as pool:\n    print(pool.map(job, [1, 2]))")
    assert done.code == 0, done.err
    rows = [(n * 6, 6, ["x", "y", "z"], 9, "data", "RED", n, None, -n) for n in (1, 2)]
    assert done.out.splitlines() == ["side effect", "handled", "work", str(rows)]


def test_classes_are_pickled_both_ways(lab: Laboratory):
    done = lab.run(
        SETTING,
        MADE,
        cell("""
            def back(item):
                return Item(item.n + 1)
            for method in ("spawn", "forkserver"):
                with mp.get_context(method).Pool(1) as pool:
                    found = pool.map(back, [special])[0]
                    print(type(found) is Item, found.n)
        """),
    )
    assert done.out.splitlines()[-2:] == ["True 10", "True 10"]


def test_a_fork_server_learns_what_came_since(lab: Laboratory):
    done = lab.run(
        "import multiprocessing as mp\ncontext = mp.get_context('forkserver')\nsize = int('1')\ndef first(): return size",
        "with context.Pool(1) as pool:\n    print(pool.apply(first))",
        "def second(): return size * 10\nsize = int('2')",
        "with context.Pool(1) as pool:\n    print(pool.apply(first), pool.apply(second))",
        "def third(): 1 / 0",
    )
    assert (done.code, done.out.split()) == (0, ["1", "2", "20"]), done.err


def test_a_variable_that_cannot_travel_says_so_when_it_is_used(lab: Laboratory):
    done = lab.run(
        cell("""
            import multiprocessing as mp, threading
            lock = threading.Lock()
            huge = bytearray(20_000_000)
            def use_lock(_):
                with lock: return 1
            def use_huge(_): return len(huge)
            def use_none(_): return lock is not None
            with mp.get_context("spawn").Pool(1) as pool:
                for function in (use_lock, use_huge, use_none):
                    try:
                        print(pool.map(function, [0]))
                    except NameError as error:
                        print(error)
        """)
    )
    lock, huge, none = done.out.splitlines()
    assert lock.startswith(
        "lock is set by cell 1 of the notebook and does not exist in this worker process (it cannot be pickled"
    )
    assert "larger than 16 MiB" in huge
    assert none == "[True]"


def test_a_definition_that_fails_in_a_worker_does_not_hide_the_others(lab: Laboratory):
    done = lab.run(
        "import multiprocessing as mp, os, threading\nmain = os.getpid()\nlock = threading.Lock()",
        "class NeedsLock:\n    inner = lock.locked()\ndef fine(x): return x + 1",
        "with mp.get_context('spawn').Pool(1) as pool:\n    print(pool.map(fine, [1]))",
    )
    assert done.out == "[2]\n"
    assert "in a worker process, cell 2, line 1: NameError" in done.err


def test_concurrent_futures(lab: Laboratory):
    done = lab.run(
        "import multiprocessing as mp\nfrom concurrent.futures import ProcessPoolExecutor\nSCALE = [3]\nSCALE.append(4)\ndef scaled(x): return x * SCALE[-1]",
        "with ProcessPoolExecutor(2, mp_context=mp.get_context('spawn')) as pool:\n    print(list(pool.map(scaled, [1, 2])))",
    )
    assert done.out == "[4, 8]\n", done.err


def quick(text: str) -> str:
    """What of a statement runs again in a worker, and the names that it leaves."""
    import ast

    kept, passed = replay.reduce(ast.parse(cell(text)).body[0])
    left = ast.unparse(kept).replace("\n", "; ") if kept is not None else ""
    return f"{left} | {' '.join(sorted(passed))}".strip()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("import a.b as c", "import a.b as c |"),
        ("@f(1)\ndef g(): x()", "@f(1); def g():;     x() |"),
        ("X = [1, {'a': -2}, f'{a}']", "X = [1, {'a': -2}, f'{a}'] |"),
        ("a, (b, c) = 1, (2, 3)", "a, (b, c) = (1, (2, 3)) |"),
        ("X: int = 2 ** 10", "X: int = 2 ** 10 |"),
        ("X += 1", "X += 1 |"),
        ("X = torch.float32", "X = torch.float32 |"),
        ("X = [int(i) for i in '1 2'.split()]", "X = [int(i) for i in '1 2'.split()] |"),
        ("P = namedtuple('P', 'a b')", "P = namedtuple('P', 'a b') |"),
        ("T = typing.TypeVar('T')", "T = typing.TypeVar('T') |"),
        ("Net.forward = forward", "Net.forward = forward |"),
        ("f = lambda x: train(x)", "f = lambda x: train(x) |"),
        ("model = Net()", "| model"),
        ("a = b = train()", "| a b"),
        ("run = wandb.init()", "| run"),
        ("train()", "|"),
        ("for i, x in y: z = i", "| i x z"),
        ("with open(p) as f: data = f.read()", "| data f"),
        ("if (n := f()) > 1: pass", "| n"),
        ("x = y[g()]", "| x"),
        ("d['a'] = 1", "|"),
        ("if torch.cuda.is_available(): d = 1", "| d"),
        (
            "if sys.version_info > (3, 9):\n    import a\n    b()\nelse:\n    a = None\n    c = d()",
            "if sys.version_info > (3, 9):;     import a; else:;     a = None | c",
        ),
        (
            "try:\n    import a\nexcept ImportError:\n    a = g()\nfinally:\n    done()",
            "try:;     import a; except ImportError:;     pass; finally:;     pass | a",
        ),
        ("try:\n    train()\nexcept E:\n    x = f()", "| x"),
        ("if __name__ == '__main__':\n    main()", "|"),
        ("del x", "|"),
        ("async def f(): pass", "async def f():;     pass |"),
    ],
)
def test_what_runs_again_in_a_worker(text: str, left: str):
    assert quick(text) == left
