"""The first error: what a failed rank's log says, and when."""

import json
import time


def test_the_last_traceback_of_a_failed_rank(bundle):
    bundle.script(
        "import time, sys\n"
        "try:\n    raise KeyError('got over')\nexcept KeyError:\n    import traceback; traceback.print_exc()\n"
        "sys.stderr.flush(); time.sleep(0.5)\n"
        "def f():\n    raise ValueError('boom\\nsecond line')\n"
        "f()\n"
    )
    before = time.time()
    assert bundle.run().returncode == 1
    error = bundle.status("rank-0.error.json")
    assert before + 0.4 < error.pop("time") < time.time()
    traceback = error.pop("traceback")
    assert traceback.startswith("Traceback (most recent call last):\n")
    assert traceback.endswith("ValueError: boom\nsecond line")
    assert "got over" not in traceback
    assert error == {
        "rank": 0,
        "node_rank": 0,
        "local_rank": 0,
        "type": "ValueError",
        "message": "boom\nsecond line",
        "file": str(bundle.folder / "code" / "main.py"),
        "cell": None,
        "line": None,
    }


def test_the_word_of_the_ranks_own_runner_stands(bundle):
    bundle.script(
        "import json, os\n"
        "place = f\"{os.environ['HYPERPOD_RECORDS']}/status/attempt-1/rank-0.error.json\"\n"
        "open(place, 'w').write(json.dumps({'type': 'Own'}))\n"
        "raise ValueError('boom')"
    )
    assert bundle.run().returncode == 1
    assert bundle.status("rank-0.error.json") == {"type": "Own"}


def test_the_first_of_several_is_known_by_time(bundle):
    bundle.script(
        "import os, sys, time\n"
        "rank = int(os.environ['RANK'])\n"
        "print('up', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        "if rank == 1:\n"
        "    sys.stderr.write('Traceback (most recent call last):\\n  x\\nRuntimeError: first\\n')\n"
        "    sys.stderr.flush(); open('first', 'w'); time.sleep(0.6); os._exit(7)\n"
        "if rank == 0:\n"
        "    while not os.path.exists('first'): time.sleep(0.01)\n"
        "    time.sleep(0.4); raise ConnectionError('the other is gone')\n"
        "time.sleep(600)",
        processes_per_node=3,
        stop_grace=5,
    )
    launcher = bundle.start()
    for local_rank in range(3):
        bundle.until_said(b"up", local_rank)
    (bundle.folder / "work" / "go").touch()
    launcher.communicate(timeout=30)
    errors = [bundle.status(f"rank-{rank}.error.json") for rank in (0, 1)]
    assert [error["type"] for error in errors] == ["ConnectionError", "RuntimeError"]
    assert errors[1]["time"] < errors[0]["time"]
    assert bundle.status("rank-2.error.json") is None


def test_one_that_got_over_an_error_is_not_blamed(bundle):
    bundle.script(
        "import os, time, traceback\n"
        "try:\n    raise KeyError('got over')\nexcept KeyError:\n    traceback.print_exc()\n"
        "print('going on', flush=True)\n"
        "if os.environ['RANK'] == '1':\n    time.sleep(0.5); os._exit(3)\n"
        "time.sleep(600)",
        processes_per_node=2,
    )
    assert bundle.run().returncode == 3
    assert bundle.status("rank-0.error.json") is None
    # Of the one that did fail, it is the best guess.
    assert bundle.status("rank-1.error.json")["type"] == "KeyError"


def test_a_cell_of_a_notebook_is_named(bundle):
    folder = bundle.folder / "code" / "train.ipynb"
    folder.mkdir()
    (folder / "cell-03.py").write_text("import json\n\njson.loads('{')\n")
    path = folder / "cell-03.py"
    bundle.script(f"exec(compile(open({str(path)!r}).read(), {str(path)!r}, 'exec'))")
    assert bundle.run().returncode == 1
    error = bundle.status("rank-0.error.json")
    assert (error["type"], error["cell"], error["line"]) == ("json.decoder.JSONDecodeError", 3, 3)
    assert error["file"] == str(path)


def test_a_crash_of_the_interpreter(bundle):
    bundle.script("import ctypes; ctypes.string_at(0)")
    assert bundle.run().returncode == 139
    error = bundle.status("rank-0.error.json")
    assert (error["type"], error["message"]) == ("Fatal Python error", "Segmentation fault")


def test_a_command_that_fails_without_a_word(bundle):
    bundle.shell("exit 3")
    assert bundle.run().returncode == 3
    assert bundle.status("rank-0.error.json") is None
    assert json.dumps(bundle.node()["error"]) == "null"
