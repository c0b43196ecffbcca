"""The examples on the embedded cluster, as a new user runs them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.conftest import ROOT

EPOCH = re.compile(r"^(\d+)\|rank (\d+) epoch (\d+)/(\d+) loss ([\d.]+)", re.MULTILINE)


def check_training(text):
    """The loss of each rank fell, and rank 0 tells an accuracy."""
    losses = {}
    for prefix, rank, epoch, _, loss in EPOCH.findall(text):
        assert prefix == rank
        losses[int(rank), int(epoch)] = float(loss)
    assert sorted(losses) == [(rank, epoch) for rank in range(4) for epoch in range(1, 11)]
    for rank in range(4):
        assert losses[rank, 10] < losses[rank, 1] / 5
    [(rank, accuracy)] = re.findall(r"^(\d+)\|accuracy ([\d.]+)%", text, re.MULTILINE)
    assert rank == "0"
    assert float(accuracy) > 93


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_demo_waits_for_its_slot_trains_on_two_nodes_and_says_what_to_try(hpj, environment):
    config = Path(environment["XDG_CONFIG_HOME"]) / "hyperpod-jlab" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[clusters.local]\nslots = 1\n")
    words = ("-c", "sleep 600", "--name=blocker", "--no-project-files")
    blocker = hpj("submit", *words).stdout.strip()
    with subprocess.Popen(
        [sys.executable, "scripts/demo.py", "--no-lab"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as demo:
        begin = [demo.stdout.readline() for _ in range(3)]
        assert hpj("cancel", blocker).returncode == 0
        text = demo.communicate(timeout=240)[0]
    assert begin[0].startswith("1. PyTorch: ")
    assert f"in use by blocker ({blocker})." in begin[1]
    assert demo.returncode == 0, text
    check_training(text)
    steps = [line.split("#")[0].split() for line in text.strip().splitlines()[-5:]]
    assert steps[0] == ["hpj", "runs"]
    run_id = steps[1][2]
    assert hpj("logs", run_id, "--rank", "1").stdout.startswith("1|rank 1 of 4: torch ")
    assert f"{run_id}  train_ddp  local    succeeded" in hpj("runs").stdout


@pytest.mark.full
@pytest.mark.timeout(120)
def test_hello_speaks_on_every_rank(hpj):
    sizes = ("--nodes=2", "--processes-per-node=2", "--launcher=python")
    done = hpj("submit", "examples/hello.ipynb", *sizes, "--follow", "--", "--word", timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(4):
        assert f"{rank}|hello from rank {rank} of 4 on " in done.stdout
        assert f"{rank}|rank {rank} counts 2" in done.stdout
    assert "0|arguments ['--word']" in done.stdout
    assert "0|  MASTER_ADDR=127.0.0.1" in done.stdout
