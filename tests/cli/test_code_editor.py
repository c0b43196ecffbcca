"""Code Editor's journeys: the tasks that go into a project, each run as the editor runs it, and the same from its terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hyperpod_jlab.features.code_editor.commands import tasks_text
from tests.cli.conftest import notebook

pytestmark = pytest.mark.local


def file_of(home):
    return home.work / ".vscode" / "tasks.json"


def told(home):
    return json.loads(file_of(home).read_text())


@pytest.fixture
def run_task(home):
    """Runs a task as the editor does: its program with its words, no shell, in the workspace's folder."""

    def run(label, file=None):
        [task] = [one for one in told(home)["tasks"] if one["label"] == label]
        assert task["type"] == "process"
        words = [word.replace("${file}", str(file)) for word in task["args"]]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [task["command"], *words],
            cwd=home.work,
            env=home.process_environment({"PATH": path}),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


# ---------------------------------------------------------------------------------------- the journeys


def test_the_open_file_is_run_and_followed_and_looked_at_again(hpj, home, run_task):
    hpj("init", "code-editor").ok()
    script = home.work / "a file; touch no.py"
    script.write_text("import os\nprint('rank', os.environ['RANK'])\n")
    seen = run_task("HyperPod: show what would run", script)
    assert seen.returncode == 0, seen.stderr
    assert hpj("runs", "--json").ok().json["runs"] == []
    done = run_task("HyperPod: run this file", script)
    assert done.returncode == 0, done.stderr
    assert "rank 0" in done.stdout
    again = run_task("HyperPod: follow the last run")
    assert "rank 0" in again.stdout
    assert not (home.work / "no.py").exists()
    why = run_task("HyperPod: why does the last run wait?")
    assert why.returncode == 0, why.stderr


def test_the_open_notebook_is_run(hpj, home, run_task):
    hpj("init", "code-editor", "--cluster", "local").ok()
    (home.work / "train.ipynb").write_text(json.dumps(notebook("x = 6", "print(x * 7)")))
    done = run_task("HyperPod: run this file", home.work / "train.ipynb")
    assert done.returncode == 0, done.stderr
    assert "42" in done.stdout


def test_the_last_run_is_cancelled(hpj, home, run_task):
    hpj("init", "code-editor").ok()
    run_id = hpj("submit", "-c", "sleep 60", "--json").ok().json["run_id"]
    done = run_task("HyperPod: cancel the last run")
    assert done.returncode == 0, done.stderr
    hpj("logs", "--follow", run_id)
    assert hpj("show", run_id, "--json").ok().json["state"] == "cancelled"


def test_from_the_terminal_a_notebook_and_its_logs(home):
    (home.work / "train.ipynb").write_text(json.dumps(notebook("print('from a cell')")))
    run_id = home.process("submit", "train.ipynb", "--wait", "--json").ok().json["run_id"]
    assert "from a cell" in home.process("logs", run_id).ok().out
    assert "train" in home.process("runs").ok().out


# ---------------------------------------------------------------------------------------- the file


def test_a_new_file_and_again(hpj, home):
    done = hpj("init", "code-editor").ok()
    assert done.out == ".vscode/tasks.json: 5 tasks written\n"
    assert file_of(home).read_text() == tasks_text()
    # The editor asks what to end when a task is started more often than this.
    assert all(task["runOptions"]["instanceLimit"] > 10 for task in told(home)["tasks"])


def test_a_file_that_is_there_stays_and_the_tasks_are_printed(hpj, home):
    file_of(home).parent.mkdir()
    file_of(home).write_text("// mine\n")
    done = hpj("init", "code-editor", "--cluster", "local").ok()
    assert done.out == tasks_text("local")
    assert "add these tasks to its list `tasks`" in done.err
    answer = hpj("init", "code-editor", "--json").ok().json
    assert (answer["written"], answer["text"]) == (False, tasks_text())
    assert file_of(home).read_text() == "// mine\n"


@pytest.mark.parametrize("kind", ["link", "file in the way", "no folder"])
def test_other_things_in_the_way(hpj, home, tmp_path, kind):
    if kind == "link":
        file_of(home).parent.mkdir()
        file_of(home).symlink_to(tmp_path / "elsewhere.json")
        assert not hpj("init", "code-editor", "--json").ok().json["written"]
        assert not (tmp_path / "elsewhere.json").exists()
        return
    if kind == "file in the way":
        (home.work / ".vscode").write_text("")
    done = hpj("init", "code-editor", "nowhere" if kind == "no folder" else ".", "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, "folder")
