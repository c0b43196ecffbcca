"""The examples on the embedded cluster, as a new user runs them."""

import re

import pytest

EPOCH = re.compile(r"^(\d+)\|rank (\d+) epoch (\d+)/(\d+) loss ([\d.]+)", re.MULTILINE)


@pytest.mark.timeout(300)
def test_the_training_learns_on_two_nodes_with_two_processes_each(hpj):
    sizes = ("--nodes=2", "--processes-per-node=2")
    done = hpj("submit", "examples/train_ddp.ipynb", *sizes, "--follow", timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = {}
    for prefix, rank, epoch, _, loss in EPOCH.findall(done.stdout):
        assert prefix == rank
        losses[int(rank), int(epoch)] = float(loss)
    assert sorted(losses) == [(rank, epoch) for rank in range(4) for epoch in range(1, 11)]
    for rank in range(4):
        assert losses[rank, 10] < losses[rank, 1] / 5
    [(rank, accuracy)] = re.findall(r"^(\d+)\|accuracy ([\d.]+)%", done.stdout, re.MULTILINE)
    assert rank == "0"
    assert float(accuracy) > 93


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
