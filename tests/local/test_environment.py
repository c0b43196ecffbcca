"""A run that brings its environment along, from the notebook to the clean-up, with packages of this test's own."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hyperpod_jlab.capture.captured import CodeFile
from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.core.records import ENVIRONMENT_FILE
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.clean import Cleaner
from hyperpod_jlab.run.preflight import environment_findings
from hyperpod_jlab.run.submit import Request
from tests.tiny_packages import wheel

pytestmark = pytest.mark.timeout(300)

PYTHON = "{}.{}".format(*sys.version_info[:2])


@pytest.fixture
def project(local, tmp_path, monkeypatch):
    """A project whose requirements come from a folder alone; its runs have time for a build with a cold cache."""
    local.deadline = 100.0
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for name in ("alpha", "beta", "gamma"):
        wheel(tmp_path / "packages", name)
    lines = f"--no-index\n--find-links {tmp_path}/packages\nalpha\n"
    (local.folder / "requirements.txt").write_text(lines)
    return local.folder


def notebook_request(folder, *cells, **environment):
    code = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
        for n, text in enumerate(cells)
    ]
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": code}
    (folder / "a.ipynb").write_text(json.dumps(document))
    data = {
        "source": {"kind": "notebook", "path": "a.ipynb"},
        "environment": {"capture": "requirements", **environment},
        "stop_grace": 2,
    }
    return Request(parse(JobSpec, data), base=folder)


async def test_lines_of_pip_feed_the_environment_and_others_stay_out_of_it(local, project, tmp_path):
    request = notebook_request(
        project,
        "%pip install beta\nimport alpha, beta, sys; print(sys.prefix)",
        f"name = 'gamma'\n%pip install --no-index --find-links {tmp_path}/packages {{name}}\n"
        "import gamma; print(gamma.__file__)",
    )
    run_id = await local.hyperpod.submitter.submit(request)
    run = await local.ended(run_id)
    log = local.log(run_id)
    assert run.state == "succeeded", log + str(run.status)
    assert "in the environment of the run already: pip install beta" in log
    prefix = next(line for line in log.splitlines() if line.startswith("/"))
    environments = local.hyperpod.partition.environments
    assert Path(prefix).is_relative_to(environments)
    assert log.splitlines()[-1] == f"{local.records(run_id)}/packages/gamma.py"
    assert list(environments.rglob("beta.py"))
    assert not list(environments.rglob("gamma.py"))

    clone = Request(request.spec, base=project, clone_of=run_id)
    assert (await local.ended(await local.hyperpod.submitter.submit(clone))).state == "succeeded"
    assert len(list(environments.iterdir())) == 1

    cleaner = Cleaner(local.hyperpod.partition, local.hyperpod.runs)
    assert (await cleaner.plan(3600)).environments == ()
    plan = await cleaner.plan(-1)
    assert len(plan.environments) == 1
    assert 0 < plan.environments_size < plan.size
    assert await cleaner.carry_out(plan) == []
    assert list(environments.iterdir()) == []


async def test_an_environment_that_a_live_run_uses_is_kept(local, project):
    environment = {"capture": "requirements"}
    run_id = await local.submit("echo up; sleep 60", environment=environment)
    await local.running(run_id)
    plan = await Cleaner(local.hyperpod.partition, local.hyperpod.runs).plan(-1)
    assert plan.environments == ()
    (used,) = local.hyperpod.partition.environments.glob("*/used/*")
    assert used.name == run_id


async def test_a_failed_build_is_the_reason_of_the_run(local, project):
    (project / "requirements.txt").write_text("--no-index\nnothing\n")
    run_id = await local.submit("true", environment={"capture": "requirements"})
    run = await local.ended(run_id)
    assert run.state == "failed"
    assert "the environment cannot be built" in run.status.reason
    assert "nothing" in run.status.reason


async def test_another_python_is_found_before_the_submit(local, project):
    spec = local.request(environment={"capture": "venv"}).spec
    engine = local.hyperpod.engines.get("local")
    for python, codes in (("3.2", ["python_version"]), (PYTHON, []), (None, [])):
        file = CodeFile(ENVIRONMENT_FILE, json.dumps({"python": python}).encode())
        findings = await environment_findings(engine, spec, [file])
        assert [finding.code for finding in findings] == codes
    file = CodeFile(ENVIRONMENT_FILE, json.dumps({"python": PYTHON, "conda": "@EXPLICIT"}).encode())
    (finding,) = await environment_findings(engine, spec, [file])
    assert (finding.code, finding.level) == ("no_environment", "error")
    run_id = await local.submit("true")
    await local.ended(run_id)
    with pytest.raises(RefusedError) as caught:
        await local.hyperpod.submitter.submit(replace(local.request(), spec=spec, clone_of=run_id))
    assert caught.value.code == "no_environment"
