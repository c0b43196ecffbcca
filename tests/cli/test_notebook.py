"""The executed notebook on the command line, of runs on the local cluster."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest

from .conftest import Home, Hpj, notebook, write_notebook

pytestmark = pytest.mark.local


def submit(hpj: Hpj, home: Home, run_id: str, *words: str, cells: tuple[Any, ...]) -> None:
    write_notebook(home.work / "train.ipynb", *cells)
    hpj("submit", "train.ipynb", "--run-id", run_id, "--no-project-files", *words)


def read(path: Path) -> dict[str, Any]:
    document = nbformat.read(path, as_version=4)
    nbformat.validate(document)
    return document


def texts(document: dict[str, Any]) -> list[str]:
    return ["".join(one.get("text", "") for one in cell["outputs"]) for cell in document["cells"]]


def test_it_is_saved_beside_the_user_and_replaced_only_by_its_own_run(home: Home, hpj: Hpj):
    cells = (("lr = 1", ["parameters"]), "print('lr', lr)", "{'text': 1}")
    submit(hpj, home, "one", "-p", "lr=0.5", "--wait", cells=cells)
    name = "train-one.ipynb"
    assert hpj("notebook", "one").ok().out == f"{name}\n"
    document = read(home.work / name)
    assert [cell["execution_count"] for cell in document["cells"]] == [1, 0, 2, 3]
    assert document["cells"][1]["source"] == "# Parameters\nlr = 0.5"
    assert texts(document)[2] == "lr 0.5\n"
    assert document["metadata"]["hyperpod"]["run_id"] == "one"
    times = document["cells"][2]["metadata"]["execution"]
    assert times["iopub.execute_input"] < times["shell.execute_reply"] < "2100"
    hpj("notebook", "one").ok()
    assert hpj("--json", "notebook", "one", "-o", "x.ipynb").ok().json == {
        "run_id": "one",
        "rank": 0,
        "attempt": 1,
        "path": "x.ipynb",
    }
    before = (home.work / "train.ipynb").read_bytes()
    refused = hpj("notebook", "one", "-o", "train.ipynb")
    assert refused.code != 0
    assert "train.ipynb exists, and is not from this run" in refused.err
    assert (home.work / "train.ipynb").read_bytes() == before
    assert json.loads(hpj("notebook", "one", "-o", "-").ok().out) == document
    hpj("notebook", "one", "-o", "train.ipynb", "--force").ok()
    assert hpj("notebook", "one", "-o", "no/such/folder.ipynb").err.startswith(
        "error: no/such/folder.ipynb cannot be written"
    )


def test_execution_counts_are_the_numbers_that_the_errors_name(home: Home, hpj: Hpj):
    cells = ("skipped = 1", ("lr = 1", ["parameters"]), "lr", "1 / 0")
    submit(hpj, home, "fails", "-p", "lr=2", "--cells", "2-4", "--wait", cells=cells)
    assert "in cell 4 line 1" in hpj("--json", "show", "fails").ok().json["reason"]
    document = json.loads(hpj("notebook", "fails", "-o", "-").ok().out)
    assert [cell["execution_count"] for cell in document["cells"]] == [2, 0, 3, 4]
    assert document["cells"][2]["outputs"][0]["execution_count"] == 3


def test_a_run_cannot_say_that_its_outputs_are_trusted(home: Home, hpj: Hpj):
    submit(hpj, home, "one", "--wait", cells=("1",))
    bundle = Path(hpj("--json", "show", "one").ok().json["bundle"])
    for copy in filter(Path.is_file, bundle.rglob("*.ipynb")):
        document = json.loads(copy.read_text())
        document["cells"][0]["metadata"].update(trusted=True, mine=True)
        copy.write_text(json.dumps(document))
    document = json.loads(hpj("notebook", "one", "-o", "-").ok().out)
    metadata = document["cells"][0]["metadata"]
    assert metadata["mine"]
    assert "trusted" not in metadata


def test_a_file_that_was_edited_is_not_replaced(home: Home, hpj: Hpj):
    submit(hpj, home, "one", "--wait", cells=("print(1)\nprint(2)\n1", ""))
    path = home.work / "train-one.ipynb"
    hpj("notebook", "one").ok()
    # An editor saves it with other metadata, and splits text into lines.
    opened = nbformat.read(path, as_version=4)
    opened.metadata["language_info"] = {"name": "python"}
    opened.cells[0].metadata["trusted"] = True
    nbformat.write(opened, path)
    assert json.loads(path.read_text())["cells"][1]["source"] == []
    hpj("notebook", "one").ok()
    document = json.loads(path.read_text())
    document["cells"][0]["metadata"]["tags"] = ["mine"]
    path.write_text(json.dumps(document))
    assert hpj("--json", "notebook", "one").error["code"] == "file_changed"
    document["cells"][0]["source"] = "print('mine')"
    path.write_text(json.dumps(document))
    for words in ((), ("-o", path.name)):
        refused = hpj("--json", "notebook", "one", *words)
        assert refused.error["code"] == "file_changed"
        assert refused.error["message"] == "train-one.ipynb has changed since hpj saved it"
        assert "--force" in refused.error["hint"]
    assert "print('mine')" in path.read_text()
    hpj("notebook", "one", "--force").ok()
    assert "print('mine')" not in path.read_text()
    hpj("notebook", "one").ok()


def test_only_regular_files_are_replaced_and_links_stay(home: Home, hpj: Hpj):
    submit(hpj, home, "one", "--wait", cells=("print(1)",))
    os.mkfifo(home.work / "fifo")
    (home.work / "nothing").symlink_to("missing.ipynb")
    (home.work / "device").symlink_to("/dev/null")
    for name in ("fifo", "nothing", "device"):
        for words in ((), ("--force",)):
            refused = hpj("--json", "notebook", "one", "-o", name, *words)
            assert refused.error["message"] == f"{name} is not a regular file"
            assert "-o - writes to standard output" in refused.error["hint"]
    assert not (home.work / "missing.ipynb").exists()
    (home.work / "linked.ipynb").write_text("{}")
    (home.work / "link").symlink_to("linked.ipynb")
    assert hpj("--json", "notebook", "one", "-o", "link").error["code"] == "file_exists"
    hpj("notebook", "one", "-o", "link", "--force").ok()
    hpj("notebook", "one", "-o", "link").ok()
    assert (home.work / "link").is_symlink()
    assert texts(read(home.work / "linked.ipynb")) == ["1\n"]


def test_a_notebook_that_was_redirected_into_a_file_is_replaced(home: Home, hpj: Hpj):
    submit(hpj, home, "one", "--wait", cells=("print('ä')",))
    (home.work / "out.ipynb").write_text(hpj("notebook", "one", "-o", "-").ok().out)
    hpj("notebook", "one", "-o", "out.ipynb").ok()


def test_ids_and_kernels_that_nbformat_refuses_are_replaced(home: Home, hpj: Hpj):
    document = notebook("1", "2", "3", "4")
    for cell, cell_id in zip(document["cells"], ("same", "same", "with space", "fine"), strict=True):
        cell["id"] = cell_id
    # Half of a character, no text at all, and a type of cell that nbformat does not know.
    document["cells"] += [
        {"cell_type": "markdown", "id": "half", "metadata": {}, "source": "\ud83d!"},
        {"cell_type": "markdown", "id": "empty", "metadata": {}},
        {"cell_type": "heading", "id": "old", "metadata": {}, "source": "h"},
    ]
    document |= {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {}}}
    (home.work / "odd.ipynb").write_text(json.dumps(document))
    hpj("submit", "odd.ipynb", "--run-id", "odd", "--no-project-files", "--wait").ok()
    executed = json.loads(hpj("notebook", "odd", "-o", "-").ok().out)
    nbformat.validate(executed)
    ids = [cell["id"] for cell in executed["cells"]]
    assert (ids[0], ids[3], len(set(ids))) == ("same", "fine", 6)
    assert [cell["source"] for cell in executed["cells"][4:]] == ["?!", ""]
    assert executed["metadata"]["kernelspec"]["name"] == "python3"


def test_ranks_and_attempts(home: Home, hpj: Hpj):
    # Rank 1 fails once rank 0 is in the last cell.
    cells = (
        "import os, pathlib, time\nattempt, rank = os.environ['HYPERPOD_ATTEMPT'], os.environ['RANK']\nprint('attempt', attempt, 'rank', rank)",
        "while (attempt, rank) == ('1', '1'):\n    if pathlib.Path('there').exists(): raise ValueError('once')\n    time.sleep(0.05)",
        "if attempt == '1':\n    print('waiting', flush=True)\n    pathlib.Path('there').touch()\n    time.sleep(600)",
    )
    options = ("--processes-per-node", "2", "--launcher", "python", "--max-restarts", "1", "--wait")
    submit(hpj, home, "two", *options, cells=cells)
    for words, text in (
        ((), "attempt 2 rank 0\n"),
        (("--rank", "1"), "attempt 2 rank 1\n"),
        (("--rank", "1", "--attempt", "1"), "attempt 1 rank 1\n"),
    ):
        document = json.loads(hpj("notebook", "two", "-o", "-", *words).ok().out)
        assert texts(document)[0] == text
    failed = json.loads(hpj("notebook", "two", "-o", "-", "--rank", "1", "--attempt", "1").ok().out)["cells"][1]
    assert (failed["outputs"][0]["ename"], failed["outputs"][0]["evalue"]) == ("ValueError", "once")
    killed = json.loads(hpj("notebook", "two", "-o", "-", "--attempt", "1").ok().out)
    assert killed["metadata"]["hyperpod"]["state"] == "failed"
    (*_, end) = killed["cells"][2]["outputs"]
    assert end["traceback"] == [f"The attempt ended in this cell: {end['evalue']}"]
    assert "raised ValueError" in end["evalue"]
    for words, message in ((("--rank", "2"), "two has no rank 2"), (("--attempt", "3"), "two has no attempt 3")):
        wrong = hpj("notebook", "two", "-o", "-", *words)
        assert (wrong.code, message in wrong.err) == (3, True)


def test_a_running_one_grows_and_a_cancelled_one_says_where_it_ended(home: Home, hpj: Hpj):
    cells = ("print('first')", "import time\nprint('waiting')\ntime.sleep(600)", "print('never')")
    submit(hpj, home, "long", cells=cells)
    deadline = time.monotonic() + 30
    while True:
        document = json.loads(hpj("notebook", "long", "-o", "-").ok().out)
        if texts(document)[1] == "waiting\n":
            break
        assert time.monotonic() < deadline, document
        time.sleep(0.1)
    assert document["cells"][1]["execution_count"] == 2
    assert "shell.execute_reply" not in document["cells"][1]["metadata"]["execution"]
    assert hpj("notebook", "long").ok().out == "train-long.ipynb (the run continues)\n"
    hpj("cancel", "long").ok()
    while hpj("--json", "show", "long").ok().json["state"] == "running":
        time.sleep(0.1)
    ended = json.loads(hpj("notebook", "long", "-o", "-").ok().out)
    assert ended["metadata"]["hyperpod"]["state"] == "cancelled"
    assert ended["cells"][1]["outputs"][-1]["ename"] == "RunEnded"
    assert ended["cells"][2]["outputs"] == []


def test_a_flood_keeps_head_and_tail_and_names_the_log(home: Home, hpj: Hpj):
    flood = "for start in range(0, 10_000_000, 100_000):\n    print('\\n'.join(f'line {n}' for n in range(start, start + 100_000)))"
    submit(hpj, home, "flood", "--wait", cells=(flood,))
    (text,) = texts(json.loads(hpj("notebook", "flood", "-o", "-").ok().out))
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("line 9999998\nline 9999999\n")
    assert "bytes are left out here; the log has all: hpj logs flood --rank 0 --attempt 1]" in text
    assert len(text) < 400_000


def test_only_notebooks_have_one(home: Home, hpj: Hpj):
    hpj("submit", "-c", "true", "--run-id", "command", "--wait").ok()
    result = hpj("--json", "notebook", "command")
    assert result.error["code"] == "no_notebook"
    assert hpj("notebook", "nothing").code == 3


def test_parameters_are_typed(home: Home, hpj: Hpj):
    (home.work / "p.ipynb").write_text(json.dumps(notebook("1")))
    given = ["a=1", "b=0.5", "c=true", "d=None", "e=text", "f=[1, 2]", 'g="1"', "h=a=b", "i=", "j=NaN"]
    words = [word for one in given for word in ("-p", one)]
    hpj("submit", "p.ipynb", "--run-id", "typed", "--no-project-files", *words).ok()
    assert hpj("--json", "show", "typed").ok().json["spec"]["source"]["parameters"] == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": None,
        "e": "text",
        "f": [1, 2],
        "g": "1",
        "h": "a=b",
        "i": "",
        "j": "NaN",
    }
    for wrong, message in (
        ("x y=1", "not a name of a variable"),
        ("lr", "such as --parameters lr=0.01"),
        ("lr=1e400", "the value of lr is too large"),
    ):
        result = hpj("submit", "p.ipynb", "--dry-run", "-p", wrong)
        assert (result.code, message in result.err) == (2, True), result.err
    refused = hpj("submit", "-c", "true", "--dry-run", "-p", "x=1")
    assert "--parameters can be used only with a notebook" in refused.err


def test_an_array_names_its_children(home: Home, hpj: Hpj):
    submit(hpj, home, "many", "--array", "0-1", "--wait", cells=("print('x')",))
    result = hpj("--json", "notebook", "many")
    assert result.error["message"] == "many is an array; only its children have notebooks"
    assert texts(json.loads(hpj("notebook", "many.1", "-o", "-").ok().out)) == ["x\n"]
