"""Stops at random moments, on ranks that do their worst: nothing may be left, and the records must be whole."""

import random
import signal
import time

import pytest

from .conftest import alive, make_bundle, processes_with

pytestmark = pytest.mark.local

WORST = """
import os, random, signal, sys, time
chance = random.Random(int(sys.argv[1]) + int(os.environ["RANK"]))
with open(f"pids-{os.environ['RANK']}", "a", buffering=1) as pids:
    for depth in range(4):
        for _ in range(chance.randrange(3)):
            if os.fork() == 0:
                if chance.random() < 0.5:
                    os.setsid()
                if chance.random() < 0.5:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                pids.write(f"{os.getpid()}\\n")
                if chance.random() < 0.3:
                    os.execve("/bin/sleep", ["sleep", "600"], {})
                break
        time.sleep(chance.random() / 20)
time.sleep(chance.random() / 2)
if chance.random() < 0.3:
    time.sleep(600)
sys.exit(chance.choice([0, 0, 1]))
"""


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.full] * (seed > 3)) for seed in range(200)])
def test_a_stop_at_a_random_moment(tmp_path, seed):
    chance = random.Random(seed)
    bundle = make_bundle(tmp_path / "run")
    bundle.script(WORST, str(seed), processes_per_node=2, stop_grace=0.2, setup="true")
    launcher = bundle.start()
    time.sleep(chance.random() * 1.5)
    launcher.send_signal(chance.choice([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]))
    time.sleep(chance.random())
    launcher.terminate()
    launcher.communicate(timeout=30)
    pids = [int(line) for path in (bundle.folder / "work").glob("pids-*") for line in path.read_text().split()]
    assert not [pid for pid in pids if alive(pid)]
    assert not processes_with(f"HYPERPOD_BUNDLE={bundle.folder}")
    record = bundle.node()
    if record is None:  # it was stopped before it began
        early = {-signal.SIGTERM, -signal.SIGINT, -signal.SIGUSR1, 1}  # Python's own ends
        assert launcher.returncode in {*early, 143}
    else:
        assert record["ended_at"] is not None
        assert record["exit_code"] == launcher.returncode
        assert record["error"] is None
