"""The examples in a plain Jupyter kernel, with Run All."""

import re

import nbformat
import pytest
from nbclient import NotebookClient

from tests.examples.conftest import ROOT

EXAMPLES = ROOT / "examples"


@pytest.fixture
def run_all(environment, monkeypatch):
    """Runs a notebook in a kernel; returns all that it showed as text."""
    for name, value in environment.items():
        if name.startswith("XDG_"):
            monkeypatch.setenv(name, value)

    def run(name):
        notebook = nbformat.read(EXAMPLES / name, as_version=4)
        client = NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(EXAMPLES)}})
        client.execute()
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        assert all(output.output_type != "error" for output in outputs)
        return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)

    return run


@pytest.mark.full
def test_the_training_learns_in_one_process(run_all):
    text = run_all("train_ddp.ipynb")
    losses = [float(loss) for loss in re.findall(r"rank 0 epoch \d+/10 loss ([\d.]+)", text)]
    assert len(losses) == 10
    assert losses[-1] < losses[0] / 5
    [accuracy] = re.findall(r"accuracy ([\d.]+)%", text)
    assert float(accuracy) > 93


@pytest.mark.full
def test_hello_says_that_it_is_alone(run_all):
    assert "hello from rank 0 of 1 on " in run_all("hello.ipynb")


def test_a_function_goes_to_the_cluster_and_its_value_comes_back(run_all):
    text = run_all("function.ipynb")
    assert "round 5 of 5: " in text
    [accuracy] = re.findall(r"'accuracy': (0\.\d+)", text)
    assert float(accuracy) > 0.95
    assert "9 neighbours: 9" in text


@pytest.mark.full
def test_a_cell_goes_to_the_cluster(run_all, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", str(EXAMPLES / "magic.ipynb"))
    text = run_all("magic.ipynb")
    assert "--- Cell 2 ---" in text
    assert "'succeeded'" in text
    assert len(re.findall(r"1\|rank 1: \d has \d+\.\d\d ink", text)) == 10
    assert "warning" not in text
