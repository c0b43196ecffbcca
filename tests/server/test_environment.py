"""Whose packages a submit from a notebook captures."""

import json
import subprocess
import sys

import pytest

from tests.tiny_packages import wheel


@pytest.fixture
def kernel(tmp_path, jp_serverapp):
    """A kernel of the server that runs in an environment of its own, with the package `alpha`."""
    python = tmp_path / "venv" / "bin" / "python"
    wheel(tmp_path / "packages", "alpha")
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, tmp_path / "venv"], check=True)
    install = [*uv, "pip", "install", "-q", "--offline", "--no-index", "--python", python]
    subprocess.run([*install, "--find-links", tmp_path / "packages", "alpha"], check=True)
    folder = tmp_path / "kernels" / "mine"
    folder.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Mine", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    jp_serverapp.kernel_spec_manager.kernel_dirs.append(str(tmp_path / "kernels"))
    return "mine"


@pytest.mark.parametrize("from_file", [False, True])
async def test_the_environment_of_the_notebooks_kernel_is_captured(api, kernel, jp_root_dir, from_file):
    cell = {"cell_type": "code", "id": "c", "metadata": {}, "source": "1", "outputs": []}
    document = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": kernel, "display_name": "", "language": "python"}},
        "cells": [{**cell, "execution_count": None}],
    }
    source = {"kind": "notebook", "path": "a.ipynb"}
    spec = {"source": source, "environment": {"capture": "venv"}}
    body: dict[str, object] = {"spec": spec}
    if from_file:
        (jp_root_dir / "a.ipynb").write_text(json.dumps(document))
    else:
        body["notebook"] = document
    status, preview = await api.request("POST", "runs/preview", body)
    assert status == 200, preview
    part = preview["parts"][-1]
    assert (part["title"], part["text"]) == ("Environment from venv", "alpha==1.0\n")


async def test_a_kernel_that_the_server_does_not_have_is_the_servers_own_python(api, kernel):
    source = {"kind": "notebook", "path": "a.ipynb"}
    cell = {"cell_type": "code", "id": "c", "metadata": {}, "source": "1", "outputs": []}
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "gone"}}, "cells": [cell]}
    body = {"spec": {"source": source, "environment": {"capture": "venv"}}, "notebook": document}
    status, preview = await api.request("POST", "runs/preview", body)
    assert status == 200, preview
    assert "pytest==" in preview["parts"][-1]["text"]
