"""Functions: by value, with the project's modules, called on every rank, their result kept by rank 0."""

from __future__ import annotations

import importlib
import json
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from hyperpod_jlab.capture.captured import FunctionCall
from hyperpod_jlab.capture.function import python_version_finding
from hyperpod_jlab.capture.results import RemoteError, load_result
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import JobSpec
from tests.capture.bundles import Bundle, Laboratory

pytestmark = pytest.mark.local


def spec_of(function: Any, **fields: Any) -> JobSpec:
    source = {
        "kind": "function",
        "module": getattr(function, "__module__", "") or "",
        "qualname": getattr(function, "__qualname__", type(function).__name__),
    }
    return JobSpec.model_validate({"source": source, **fields})


@pytest.fixture
def modules(lab: Laboratory, monkeypatch) -> Iterator[Any]:
    """Makes modules in the project's folder and imports them."""
    monkeypatch.syspath_prepend(str(lab.base))
    made: list[str] = []

    def make(**texts: str) -> Any:
        for name, text in texts.items():
            (lab.base / f"{name}.py").write_text(textwrap.dedent(text))
            made.append(name)
        importlib.invalidate_caches()
        loaded = [importlib.import_module(name) for name in texts]
        return loaded[0] if len(loaded) == 1 else loaded

    yield make
    for name in made:
        sys.modules.pop(name, None)


def bundle_of(lab: Laboratory, function: Any, *args: Any, **kwargs: Any) -> Bundle:
    call = FunctionCall(function, args, kwargs)
    return lab.bundle(lab.capture(spec_of(function), call=call))


def result_of(bundle: Bundle) -> Any:
    return load_result(bundle.folder)


def test_the_value_comes_back(lab: Laboratory, modules):
    module = modules(jobs="def add(a, b=1, *, c=0):\n    print('adding')\n    return [a + b + c]")
    bundle = bundle_of(lab, module.add, 1, c=5)
    done = bundle.run()
    assert (done.code, done.out) == (0, "adding\n"), done.err
    assert result_of(bundle) == [7]
    assert (bundle.folder / "result.json").read_text() == "[7]"


def test_it_answers_the_launchers_question_where_it_is(lab: Laboratory, modules):
    number = int(signal.SIGRTMIN + 8)
    module = modules(jobs=f"import os\ndef waits_here():\n    os.kill(os.getpid(), {number})")
    done = bundle_of(lab, module.waits_here).run(HYPERPOD_STACK_SIGNAL=str(number))
    assert done.code == 0
    assert "in waits_here" in done.err


def test_later_edits_change_nothing(lab: Laboratory, modules):
    jobs, other = modules(
        jobs="import other\nfrom other import near\ndef run():\n    return [near(), other.far(), other.Box().v]",
        other="CONST = 'old'\ndef near(): return CONST\ndef far(): return near() + '!'\nclass Box:\n    v = CONST",
    )
    call = FunctionCall(jobs.run)
    captured = lab.capture(spec_of(jobs.run, files={"project": False}), call=call)
    (lab.base / "jobs.py").write_text("1/0")
    (lab.base / "other.py").write_text("1/0")
    bundle = lab.bundle(captured)
    assert bundle.run().code == 0
    assert result_of(bundle) == ["old", "old!", "old"]
    assert other.__name__ not in cloudpickle.list_registry_pickle_by_value()


def test_the_registry_is_restored_after_a_failure_too(lab: Laboratory, modules):
    module = modules(jobs="import threading\nlock = threading.Lock()\ndef run():\n    return lock")
    cloudpickle.register_pickle_by_value(module)
    try:
        with pytest.raises(InvalidInputError):
            lab.capture(spec_of(module.run), call=FunctionCall(module.run))
        assert "jobs" in cloudpickle.list_registry_pickle_by_value()
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def test_closures_lambdas_methods_and_partials(lab: Laboratory, modules):
    module = modules(
        jobs="""
        import functools
        def outer(n):
            return lambda x: x * n
        class Job:
            def __init__(self, n): self.n = n
            def run(self, x): return self.n + x
            def __call__(self, x): return self.n - x
        double = functools.partial(pow, 2)
        """
    )
    for position, (function, expected) in enumerate(
        [(module.outer(3), 12), (module.Job(1).run, 5), (module.Job(1), -3), (module.double, 16)]
    ):
        other = Laboratory(lab.base, lab.partition / str(position))
        other.partition.mkdir(parents=True)
        bundle = bundle_of(other, function, 4)
        done = bundle.run()
        assert done.code == 0, done.err
        assert result_of(bundle) == expected


def test_async_functions_are_awaited(lab: Laboratory, modules):
    module = modules(jobs="import asyncio\nasync def run():\n    return await asyncio.sleep(0, 'slept')")
    bundle = bundle_of(lab, module.run)
    bundle.run()
    assert result_of(bundle) == "slept"


def test_all_ranks_call_and_rank_0_keeps(lab: Laboratory, modules):
    module = modules(
        jobs="import os\ndef run():\n    print('rank', os.environ['RANK'])\n    return int(os.environ['RANK']) + 10"
    )
    bundle = bundle_of(lab, module.run)
    assert [done.out for done in bundle.run_ranks(2)] == ["rank 0\n", "rank 1\n"]
    assert result_of(bundle) == 10


@pytest.mark.parametrize(
    ("value", "file"),
    [
        ({"a": [1, 2.5, None, True, "\u00e9\U0001f600$"]}, "result.json"),
        (None, "result.json"),
        (-0.0, "result.json"),
        (2**70, "result.json"),
        ((1, 2), "result.pkl"),
        ({1: "a"}, "result.pkl"),
        (float("inf"), "result.pkl"),
        (True + 0j, "result.pkl"),
        (b"bytes", "result.pkl"),
        ("\ud800", "result.json"),
    ],
)
def test_each_value_takes_the_first_form_that_gives_it_back(lab: Laboratory, modules, value, file):
    module = modules(jobs="def run(value):\n    return value")
    bundle = bundle_of(lab, module.run, value)
    assert bundle.run().code == 0
    found = result_of(bundle)
    assert {path.name for path in bundle.folder.glob("result.*")} == {file}
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("made", "file"),
    [
        ("np.arange(6, dtype='>i2').reshape(2, 3)", "result.npy"),
        ("np.asfortranarray(np.eye(2))", "result.npy"),
        ("np.array([{}], dtype=object)", "result.pkl"),
        ("np.float64(3)", "result.pkl"),
        ("{'x': np.ones(2)}", "result.pkl"),
    ],
)
def test_each_array_takes_the_first_form_that_gives_it_back(lab: Laboratory, modules, made, file):
    import numpy as np

    value = eval(made, {"np": np})
    module = modules(jobs="def run(value):\n    return value")
    bundle = bundle_of(lab, module.run, value)
    assert bundle.run().code == 0
    found = result_of(bundle)
    assert {path.name for path in bundle.folder.glob("result.*")} == {file}
    assert type(found) is type(value)
    np.testing.assert_equal(found, value)
    if isinstance(value, np.ndarray):
        assert (found.dtype, found.flags.f_contiguous) == (value.dtype, value.flags.f_contiguous)


def test_an_exception_comes_back_with_its_traceback(lab: Laboratory, modules):
    module = modules(
        jobs="class MyError(Exception):\n    pass\ndef inner():\n    raise MyError('words', 3)  # here\ndef run():\n    inner()"
    )
    bundle = bundle_of(lab, module.run)
    done = bundle.run()
    assert done.code == 1
    assert "raise MyError('words', 3)  # here" in done.err
    assert "hyperpod_runtime" not in done.err
    with pytest.raises(module.MyError) as caught:
        result_of(bundle)
    assert caught.value.args == ("words", 3)
    assert "in inner" in str(caught.value.__cause__)
    assert done.error is not None
    assert (done.error["type"], done.error["message"], done.error["cell"]) == ("jobs.MyError", "('words', 3)", None)


def test_an_exception_that_cannot_be_pickled_comes_as_text(lab: Laboratory, modules):
    module = modules(
        jobs="import threading\nclass Odd(Exception):\n    def __init__(self): self.lock = threading.Lock()\n    def __str__(self): return 'odd one'\ndef run():\n    raise Odd()"
    )
    bundle = bundle_of(lab, module.run)
    bundle.run()
    with pytest.raises(RemoteError, match="odd one") as caught:
        result_of(bundle)
    assert "in run" in caught.value.detail["traceback"]


def test_a_value_that_cannot_be_kept_fails_the_run_in_words(lab: Laboratory, modules):
    module = modules(jobs="def run():\n    return (i for i in 'ab')")
    bundle = bundle_of(lab, module.run)
    assert bundle.run().code == 1
    with pytest.raises(Exception, match="returned a generator object, which cannot be pickled"):
        result_of(bundle)


def test_an_earlier_attempts_result_does_not_outlive_a_failure(lab: Laboratory, modules):
    module = modules(jobs="import os\ndef run():\n    return 1 // int(os.environ['DIVISOR'])")
    bundle = bundle_of(lab, module.run)
    assert bundle.run(DIVISOR="1").code == 0
    assert result_of(bundle) == 1
    assert bundle.run(DIVISOR="0").code == 1
    with pytest.raises(ZeroDivisionError):
        result_of(bundle)
    assert bundle.run(DIVISOR="1").code == 0
    assert result_of(bundle) == 1


def test_exit_codes_of_functions(lab: Laboratory, modules):
    module = modules(jobs="import sys\ndef run():\n    sys.exit(4)")
    assert bundle_of(lab, module.run).run().code == 4


def test_sources_are_there_on_the_far_side(lab: Laboratory, modules):
    module = modules(jobs="import inspect\ndef run():\n    # $HOME\n    return inspect.getsource(run)")
    captured = lab.capture(spec_of(module.run, files={"project": False}), call=FunctionCall(module.run))
    bundle = lab.bundle(captured)
    (lab.base / "jobs.py").unlink()
    assert bundle.run().code == 0
    assert result_of(bundle) == "def run():\n    # $HOME\n    return inspect.getsource(run)\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_find_functions_and_classes_that_came_by_value(lab: Laboratory, modules, method):
    module = modules(
        jobs="""
        import multiprocessing as mp
        class Item:
            def __init__(self, n): self.n = n
        def job(item): return Item(item.n + 1)
        def run(method):
            with mp.get_context(method).Pool(1) as pool:
                found = pool.map(job, [Item(1)])[0]
            return [type(found) is Item, found.n]
        """
    )
    bundle = bundle_of(lab, module.run, method)
    done = bundle.run()
    assert done.code == 0, done.err
    assert result_of(bundle) == [True, 2]


def test_functions_of_main_by_value_and_in_workers(lab: Laboratory):
    """As from a notebook: what `__main__` defines, sent by a process that ends."""
    script = lab.base / "send.py"
    script.write_text(
        textwrap.dedent("""
            import multiprocessing as mp, pickle, sys
            from pathlib import Path
            from hyperpod_jlab.capture import capture, FunctionCall
            from hyperpod_jlab.core.spec import JobSpec
            class Item:
                def __init__(self, n): self.n = n
            def job(item): return Item(item.n * FACTOR)
            FACTOR = 5
            def run():
                with mp.get_context("spawn").Pool(1) as pool:
                    return pool.map(job, [Item(2)])[0].n
            spec = JobSpec.model_validate({"source": {"kind": "function", "module": "__main__", "qualname": "run"}})
            captured = capture(spec, base=Path.cwd(), call=FunctionCall(run))
            sys.stdout.buffer.write(pickle.dumps(captured))
        """)
    )
    import os
    import pickle
    import subprocess

    root = Path(__file__).parents[2]
    sent = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        check=True,
        cwd=lab.base,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    bundle = lab.bundle(pickle.loads(sent.stdout))
    script.unlink()
    done = bundle.run()
    assert done.code == 0, done.err
    assert result_of(bundle) == 10


def test_what_cannot_be_pickled_is_named(lab: Laboratory, modules):
    module = modules(
        jobs="import threading\nlock = threading.Lock()\ndef uses(): return lock\ndef takes(a, b=None): return a"
    )
    cases = [
        (FunctionCall(module.uses), "'lock'", "inside the function"),
        (FunctionCall(module.takes, (1, (i for i in "ab"))), "argument 2, a generator object", "generator"),
        (FunctionCall(module.takes, ({"deep": [threading.Lock()]},)), "argument 1['deep'][0], a lock object", "lock"),
        (
            FunctionCall(module.takes, (), {"a": (lab.base / "log").open("wb")}),
            "argument 'a', a BufferedWriter",
            "file",
        ),
    ]
    for call, words, hint in cases:
        with pytest.raises(InvalidInputError) as caught:
            lab.capture(spec_of(call.function), call=call)
        assert caught.value.code == "not_picklable"
        assert words in caught.value.message
        assert caught.value.hint is not None
        assert hint in caught.value.hint


def test_without_the_function_itself_it_is_refused(lab: Laboratory):
    with pytest.raises(InvalidInputError, match="only by the process that defines it"):
        lab.capture(spec_of(print))
    with pytest.raises(InvalidInputError, match="cannot be called"):
        lab.capture(spec_of(print), call=FunctionCall(3))  # type: ignore[arg-type]


def test_the_bundle_brings_its_own_cloudpickle(lab: Laboratory):
    captured = lab.capture(spec_of(print), call=FunctionCall(print))
    paths = {file.path for file in captured.files}
    assert "code/lib/cloudpickle/cloudpickle.py" in paths
    assert "code/main.py" in paths
    assert captured.name == "print"


def test_capture_is_the_same_each_time_but_for_the_pickle(lab: Laboratory, modules):
    module = modules(jobs="def run(): return 1")
    one, two = (lab.capture(spec_of(module.run), call=FunctionCall(module.run)) for _ in range(2))
    differing = [a.path for a, b in zip(one.files, two.files, strict=True) if a != b]
    assert set(differing) <= {"code/function.pkl"}


def test_another_python_is_refused_before_it_is_sent_and_on_the_far_side(lab: Laboratory, modules):
    assert python_version_finding((3, 11, 7), (3, 11, 2)) is None
    found = python_version_finding((3, 11, 7), (3, 9, 1))
    assert found is not None
    assert (found.level, found.field) == ("error", "environment.python")
    assert "Python 3.11" in found.message
    assert "Python 3.9" in found.message
    module = modules(jobs="def run(): return 1")
    bundle = bundle_of(lab, module.run)
    plan = bundle.folder / "code" / "function.json"
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "python": [3, 5, 0]}))
    done = bundle.run()
    assert done.code == 1
    assert "pickled by Python 3.5" in done.err
