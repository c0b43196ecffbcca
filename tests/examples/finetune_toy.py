"""The journey of examples/finetune at a still smaller size: what its tests on each cluster share."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.examples.conftest import ROOT

EXAMPLE = ROOT / "examples" / "finetune"
STEPS = 40
EVERY = 4
TRAINING = [
    *("--lr=4e-3", "--batch=16", "--micro-batch=8", "--warmup=4"),
    *(f"--max-steps={STEPS}", f"--checkpoint-every={EVERY}"),
]
FIRST_CHECKPOINT = f"checkpoint step-{EVERY:08d} written"


def steps(folder: Path, *lines: str, python: str = sys.executable) -> str:
    """Run steps of the example one after the other in one process, as the only rank; returns what they print."""
    modules = [line.partition(".")[0] for line in lines]
    program = "\n".join([f"import {', '.join(modules)}", f"folder = '--folder={folder}'", *lines])
    alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    alone |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, "-c", program], cwd=EXAMPLE, env={**os.environ, **alone}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def prepare(folder: Path, python: str = sys.executable) -> None:
    """A base model and chats."""
    steps(
        folder,
        "get_model.main([folder, '--toy-steps=80'])",
        "prepare_data.main([folder, '--toy-chats=660', '--held-out=16'])",
        python=python,
    )


def losses(text: str) -> dict[int, float]:
    """The loss of each step."""
    found = re.findall(rf"^step (\d+)/{STEPS} loss ([\d.]+) ", text, re.MULTILINE)
    return {int(step): float(loss) for step, loss in found}


def check_continued(first: str, second: str) -> None:
    """The second attempt went on from a checkpoint of the first to the end, and its steps are those that the first would have made."""
    assert "starting at step 1" in first
    [after] = re.findall(r"^continuing after step (\d+)$", second, re.MULTILINE)
    assert int(after) >= EVERY
    assert int(after) % EVERY == 0
    before, later = losses(first), losses(second)
    assert list(later) == list(range(int(after) + 1, STEPS + 1))
    assert {step: later[step] for step in before.keys() & later.keys()} == {
        step: before[step] for step in before.keys() & later.keys()
    }
    assert later[STEPS] < before[1] / 3
