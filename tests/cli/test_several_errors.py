"""Several errors at once: each is printed with its own hint, and no stack trace of a query that ran beside."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.local

KUBERNETES = '[clusters.k]\norchestrator = "kubernetes"\ncontext = "nope"\n'
SLURM = '[clusters.s]\norchestrator = "slurm"\ncommands = "/nowhere"\n'


@pytest.mark.parametrize("command", ["cancel", "hold"])
def test_queries_beside_a_failed_one_print_nothing(home, hpj, monkeypatch, command):
    monkeypatch.setenv("KUBECONFIG", str(home.work / "missing"))
    home.config.write_text(KUBERNETES)
    done = home.process(command, "--jobs", "12", "--cluster", "k")
    assert done.code != 0
    assert "Traceback" not in done.err + done.out
    assert "asyncio" not in done.err


def test_a_submit_to_slurm_that_does_not_answer_prints_its_error_only(home):
    home.config.write_text(SLURM)
    (home.work / "ok.py").write_text("print(1)\n")
    for _ in range(5):
        done = home.process("submit", "ok.py", "--cluster", "s")
        assert done.code != 0
        assert "Traceback" not in done.err
        assert "never retrieved" not in done.err


def test_each_error_has_its_own_hint(home, hpj):
    done = hpj("submit", "-c", "true", "--gpus-per-node", "512", "--image", "x:1")
    lines = done.err.splitlines()
    errors = [at for at, line in enumerate(lines) if line.startswith("error: ")]
    assert len(errors) == 2
    gpus = next(at for at in errors if "512" in lines[at])
    assert "--gpus-per-node" in lines[gpus + 1]
    assert lines[gpus + 1].startswith("hint: ")
