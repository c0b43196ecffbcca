"""Code Editor's journeys: the tasks that go into a project, each run as the editor runs it, and the same from its terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hyperpod_jlab.features.code_editor import service as commented_json
from hyperpod_jlab.features.code_editor.service import tasks
from tests.cli.conftest import notebook

pytestmark = pytest.mark.local

LABELS = [task["label"] for task in tasks()]
TEMPLATE = """\
{
\t// See https://go.microsoft.com/fwlink/?LinkId=733558
\t// for the documentation about the tasks.json format
\t"version": "2.0.0",
\t"tasks": [
\t\t{
\t\t\t"label": "echo",
\t\t\t"command": "echo // /* no comment, ]",
\t\t}, // at the end
\t]
}
"""


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
    assert done.out == ".vscode/tasks.json: tasks: 5 added\n"
    assert [task["label"] for task in told(home)["tasks"]] == LABELS
    # The editor asks what to end when a task is started more often than this.
    assert all(task["runOptions"]["instanceLimit"] > 10 for task in told(home)["tasks"])
    before = file_of(home).read_bytes()
    again = hpj("init", "code-editor", "--json").ok().json
    assert (again["added"], again["kept"]) == ([], LABELS)
    assert file_of(home).read_bytes() == before


def test_what_is_there_stays(hpj, home):
    file_of(home).parent.mkdir()
    mine = {"label": "bauen, schön", "type": "shell", "command": "make"}
    text = json.dumps({"inputs": [], "tasks": [mine]}, indent="\t", ensure_ascii=False)
    file_of(home).write_text(text)
    file_of(home).chmod(0o640)
    hpj("init", "code-editor").ok()
    found = told(home)
    assert (found["inputs"], found["tasks"][0], found["version"]) == ([], mine, "2.0.0")
    assert [task["label"] for task in found["tasks"][1:]] == LABELS
    assert "bauen, schön" in file_of(home).read_text()
    assert '\n\t"tasks"' in file_of(home).read_text()
    assert file_of(home).stat().st_mode & 0o777 == 0o640
    assert [one.name for one in file_of(home).parent.iterdir()] == ["tasks.json"]


def test_a_task_that_was_changed_stays_unless_it_is_to_be_replaced(hpj, home):
    hpj("init", "code-editor").ok()
    found = told(home)
    found["tasks"][0]["args"] = ["submit", "${file}", "--nodes", "2"]
    file_of(home).write_text(json.dumps(found))
    hpj("init", "code-editor", "--cluster", "local").ok()
    assert told(home) == found
    done = hpj("init", "code-editor", "--cluster", "local", "--replace", "--json").ok().json
    assert done["replaced"] == LABELS[:2]
    assert told(home)["tasks"] == tasks("local")


@pytest.mark.parametrize(
    "text",
    [
        '{"version": "2.0.0", "tasks": [}',
        '// only this\n{"version": "2.0.0"}',
        '{"tasks": [], /* and no version */}',
        "// nothing at all",
        "[]",
        '{"tasks": {}}',
        '{"version": "0.1.0", "command": "make"}',
    ],
)
def test_what_cannot_be_merged_is_left_alone_and_the_tasks_are_printed(hpj, home, text):
    file_of(home).parent.mkdir()
    file_of(home).write_text(text)
    done = hpj("init", "code-editor")
    assert done.code != 0
    assert "was not changed" in done.err
    assert json.loads(done.out)["tasks"] == tasks()
    done = hpj("init", "code-editor", "--json")
    assert done.error["code"] == "tasks_cannot_be_merged"
    assert json.loads(done.error["detail"]["text"])["tasks"] == tasks()
    assert file_of(home).read_text() == text


def test_the_editors_own_template_keeps_its_comments(hpj, home):
    file_of(home).parent.mkdir()
    file_of(home).write_text(TEMPLATE)
    done = hpj("init", "code-editor", "--json").ok().json
    assert (done["added"], done["replaced"]) == (LABELS, [])
    text = file_of(home).read_text()
    head, tail = TEMPLATE.split("// at the end\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    found = commented_json.loads(text)["tasks"]
    assert found == [{"label": "echo", "command": "echo // /* no comment, ]"}, *tasks()]
    assert '\n\t\t\t"label": "HyperPod: run this file"' in text
    hpj("init", "code-editor").ok()
    assert file_of(home).read_text() == text


def test_what_would_cost_comments_is_not_replaced(hpj, home):
    file_of(home).parent.mkdir()
    file_of(home).write_text(TEMPLATE)
    hpj("init", "code-editor").ok()
    before = file_of(home).read_text()
    done = hpj("init", "code-editor", "--cluster", "local", "--replace", "--json")
    assert done.error["code"] == "tasks_cannot_be_merged"
    assert file_of(home).read_text() == before


@pytest.mark.parametrize(
    "list_", ["[]", "[\n]", "[ // none\n]", "[1]", "[1,]", "[1 /* , */ , // one\n]"]
)
def test_values_are_put_into_a_list_with_comments(list_):
    text = f'{{// "tasks": [\n "a": {{"tasks": [0]}}, "b": "tasks", "tasks": {list_},\n}} // ]'
    new = commented_json.append(text, "tasks", [{"x": 2}, "ü"], 1)
    before = commented_json.loads(text)
    assert commented_json.loads(new) == {**before, "tasks": [*before["tasks"], {"x": 2}, "ü"]}
    for comment in ('// "tasks": [\n', "// none\n", "/* , */", "// one\n", "} // ]"):
        assert (comment in new) == (comment in text)


def test_only_printed(hpj, home):
    done = hpj("init", "code-editor", "--print", "--cluster", "local").ok()
    assert json.loads(done.out)["tasks"] == tasks("local")
    assert not file_of(home).exists()


@pytest.mark.parametrize("kind", ["link", "file in the way", "no folder"])
def test_other_things_in_the_way(hpj, home, tmp_path, kind):
    if kind == "link":
        file_of(home).parent.mkdir()
        (tmp_path / "elsewhere.json").write_text("{}")
        file_of(home).symlink_to(tmp_path / "elsewhere.json")
    elif kind == "file in the way":
        (home.work / ".vscode").write_text("")
    folder = "nowhere" if kind == "no folder" else "."
    done = hpj("init", "code-editor", folder, "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, "folder")
    if kind == "link":
        assert (tmp_path / "elsewhere.json").read_text() == "{}"
