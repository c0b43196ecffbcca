"""The journey that `make demo ARGS=--finetune` runs: examples/finetune/ at toy size on two nodes of the embedded cluster.

While it trains, a node is killed. The run starts again and continues from the last checkpoint.
"""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import hyperpod_jlab
from hyperpod_jlab.run.services import Hyperpod

FOLDER = "finetune-demo"
"""Of the storage partition; what an earlier demo left there is removed."""
KILL_AFTER = b"checkpoint step-00000060 written"
AGENT = re.compile(rb"(?:\x1b\[[\d;]*m)*node\d+\|(?!.*hyperpod: )")
"""What torchrun writes when it is stopped: a traceback of its own."""
NODES = ["--nodes=2"]
TRAINING = ["--lr=4e-3", "--batch=32", "--micro-batch=16", "--log-every=10", "--checkpoint-every=20"]
STEPS: tuple[tuple[str, str, list[str], list[str]], ...] = (
    ("A base model: a toy Llama, trained here", "get_model.py", [], []),
    ("Chats as tokens", "prepare_data.py", [], []),
    ("FSDP and LoRA on two nodes", "train.py", [*NODES, "--max-restarts=3"], TRAINING),
    ("The adapter merged into the base model", "merge.py", [], []),
    ("ROUGE of both models on held-out chats", "evaluate.py", NODES, []),
)


def journey(submit: "Submit", say: Callable[[str], None]) -> int:
    """Take all steps; returns the exit code of the first one that fails."""
    folder = Hyperpod().partition.root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    kill = NodeKill(say)
    for title, script, size, words in STEPS:
        say(f"\n=== {title}")
        arguments = [f"examples/finetune/{script}", *size, "--", f"--folder={FOLDER}", *words]
        code = submit(arguments, kill)
        if code != 0:
            return code
    scores = json.loads((folder / "report.json").read_text(encoding="utf-8"))["scores"]
    say(f"\n{(folder / 'report.md').read_text(encoding='utf-8')}")
    base, tuned = (scores[name]["rougeL"] for name in ("base", "tuned"))
    say(f"ROUGE-L of the base model {base:.3f}, tuned {tuned:.3f}. Everything is in {folder}")
    return 0 if kill.done and tuned > base else 1


class NodeKill:
    """Kills node 1 of a run, once, when a checkpoint has been written."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.done = False
        self._stopping = False

    def shows(self, line: bytes) -> bool:
        """Whether a line is of interest: not torchrun's traceback on the other node, which is stopped."""
        self._stopping = self._stopping and b"--- attempt 2 started" not in line
        return not (self._stopping and AGENT.match(line))

    def seen(self, run_id: str, line: bytes) -> None:
        """A line of the run."""
        if self.done or KILL_AFTER not in line:
            return
        self.done = self._stopping = True
        record = Path(hyperpod_jlab.get(run_id).bundle, "status/attempt-1/node-1.json")
        process = json.loads(record.read_text(encoding="utf-8"))["pid"]
        os.kill(process, signal.SIGKILL)
        self._say(f"--- killed node 1 (its launcher, process {process}) ---")


Submit = Callable[[list[str], NodeKill], int]
"""Submits with these words of `hpj` and follows, with each line for the NodeKill; returns the exit code."""
