"""The examples run with a storage, a line and a configuration of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def environment(tmp_path):
    """Variables for processes of a new user."""
    variables = {**os.environ, "HYPERPOD_CONFIG": ""}
    for name in ("DATA", "STATE", "CACHE", "CONFIG"):
        variables[f"XDG_{name}_HOME"] = str(tmp_path / name.lower())
    return variables


@pytest.fixture
def hpj(environment):
    """Runs the command line in the repository's root."""

    def run(*words, timeout=60):
        command = [sys.executable, "-m", "hyperpod_jlab.cli.main", *words]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)

    return run
