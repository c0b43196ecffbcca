"""The executed notebook: what cells put out, compared with a kernel's outputs."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from hyperpod_jlab.features.notebook.outputs import CellOutputs, fill_cells, read_outputs
from tests.capture.bundles import Bundle, Laboratory, notebook_of
from tests.capture.output_cells import OUTPUT_CELLS, TORCH_CELLS

# A run has 100 s, and so has a kernel; the first test waits for both.
pytestmark = pytest.mark.timeout(300)


def run_recorded(bundle: Bundle, python: str | None = None, **variables: str) -> int:
    """Run rank 0 as the launcher does, with its log as stdout and stderr; the exit code."""
    log = log_of(bundle)
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        process = bundle.start(0, 1, **({"python": python} if python else {}), output=descriptor, **variables)
    finally:
        os.close(descriptor)
    return process.wait(timeout=100)


def log_of(bundle: Bundle) -> Path:
    return bundle.folder / "logs" / "attempt-1" / "node-0.rank-0.log"


def outputs_of(bundle: Bundle) -> dict[int, CellOutputs]:
    log = log_of(bundle).read_bytes()
    record = log_of(bundle).with_suffix(".outputs.jsonl").read_bytes()
    return read_outputs(record.split(b"\n"), len(log), lambda begin, end: log[begin:end].decode())


def executed(bundle: Bundle) -> dict[str, Any]:
    """The executed notebook, checked against the format."""
    document: dict[str, Any] = json.loads((bundle.folder / "code" / "notebook.ipynb").read_bytes())
    fill_cells(document["cells"], outputs_of(bundle), str)
    nbformat.validate(nbformat.from_dict(document))
    return document


def texts_of(bundle: Bundle) -> list[str]:
    return ["".join(one.get("text", "") for one in cell["outputs"]) for cell in executed(bundle)["cells"]]


ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def comparable(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs without what differs from one kernel to another: counts, addresses, the lines of tracebacks, the line ends of a terminal,
    and the order of stdout and stderr, which a kernel sends in parts.
    """
    result: list[dict[str, Any]] = []
    streams: dict[str, dict[str, Any]] = {}
    for output in outputs:
        one = json.loads(ADDRESS.sub("0x", json.dumps(output)))
        one.pop("execution_count", None)
        one.pop("traceback", None)
        one.pop("transient", None)
        if one["output_type"] != "stream":
            streams.clear()
        elif one["name"] in streams:
            streams[one["name"]]["text"] += one["text"]
            continue
        else:
            streams[one["name"]] = one
        result.append(one)
    for one in result:
        if one["output_type"] == "stream":
            one["text"] = one["text"].replace("\r\n", "\n")
    return result


def execute_with_nbclient(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    notebook = nbformat.from_dict(document)
    client = NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(folder)}})
    with contextlib.suppress(CellExecutionError):
        client.execute()
    return notebook


Pair = tuple[dict[str, Any], dict[str, Any]]


def execute_both(folder: Path, cells: dict[str, str], code: int) -> Pair:
    """A notebook of these cells, executed by a run, which ends with this exit code, and by a kernel."""
    (folder / "base").mkdir()
    bundle = Laboratory(folder / "base", folder / "partition").cells(*cells.values())
    assert run_recorded(bundle) == code
    (folder / "kernel").mkdir()
    reference = execute_with_nbclient(notebook_of(*cells.values()), folder / "kernel")
    return executed(bundle), reference


def check_cell(pair: Pair, index: int) -> None:
    ours, reference = (document["cells"][index] for document in pair)
    assert comparable(ours["outputs"]) == comparable(reference["outputs"])
    assert ours["source"] == reference["source"]
    assert ours["id"] == reference["id"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Pair:
    return execute_both(tmp_path_factory.mktemp("outputs"), OUTPUT_CELLS, 1)


def test_there_are_more_than_a_hundred_of_them():
    assert len(OUTPUT_CELLS) > 100


@pytest.mark.parametrize("name", OUTPUT_CELLS)
def test_a_cell_has_the_outputs_of_a_kernel(pair, name: str):
    check_cell(pair, list(OUTPUT_CELLS).index(name))


@pytest.mark.torch
def test_so_have_tensors_and_progress_bars(tmp_path: Path):
    pair = execute_both(tmp_path, TORCH_CELLS, 0)
    for index in range(len(TORCH_CELLS)):
        check_cell(pair, index)


# --------------------------------------------------------------------------------------------------
# What a kernel would not have: other ranks, ends from outside, limits.


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    (tmp_path / "base").mkdir()
    return Laboratory(tmp_path / "base", tmp_path / "partition")


def kinds_of(cell: CellOutputs) -> list[list[str]]:
    return [sorted(output.get("data", [output["output_type"]])) for output in cell.outputs]


def test_a_killed_rank_leaves_what_it_had(lab: Laboratory):
    kill = "import os, signal\nprint('so far')\ndisplay('shown')\nprint('last words')\nos.kill(os.getpid(), signal.SIGKILL)"
    bundle = lab.cells("print('one')", kill, "print('never')")
    assert run_recorded(bundle) == -9
    first, second = outputs_of(bundle).values()
    assert first.ended_at is not None
    assert second.ended_at is None
    texts = [output.get("text") or output["data"]["text/plain"] for output in second.outputs]
    assert texts == ["so far\n", "'shown'", "last words\n"]


def test_each_rank_has_its_own(lab: Laboratory):
    bundle = lab.cells("import os\nprint('rank', os.environ['RANK'])\nint(os.environ['RANK']) * 10")
    assert run_recorded(bundle, RANK="1", WORLD_SIZE="2") == 0
    assert [one.get("text") or one["data"] for one in outputs_of(bundle)[1].outputs] == [
        "rank 1\n",
        {"text/plain": "10"},
    ]
    # The log has the value of a cell once, from rank 0.
    assert log_of(bundle).read_text() == "rank 1\n"


def test_child_processes_print_into_the_cell_and_record_nothing(lab: Laboratory):
    forked = (
        "import os, sys\nif os.fork() == 0:\n    display('in the child')\n    os._exit(0)\nos.wait()\nprint('parent')"
    )
    spawned = "import subprocess\nsubprocess.run(['echo', 'from echo'])\nNone"
    bundle = lab.cells(forked, spawned)
    assert run_recorded(bundle) == 0
    assert texts_of(bundle) == ["'in the child'\nparent\n", "from echo\n"]


def test_an_output_that_is_too_large_is_said(lab: Laboratory):
    bundle = lab.cells("display({'text/plain': 'huge', 'text/html': 'x' * 200_000_000}, raw=True)\nprint('went on')")
    assert run_recorded(bundle) == 0
    note = "an output is not kept in the notebook: text/html of 200 MB; the limit is 16 MiB"
    assert outputs_of(bundle)[1].outputs[0]["data"] == {"text/plain": f"huge\n[{note}]"}
    assert note in log_of(bundle).read_text()
    assert log_of(bundle).with_suffix(".outputs.jsonl").stat().st_size < 10_000


def test_outputs_for_which_there_is_no_room_leave_a_place_and_later_cells_are_kept(lab: Laboratory):
    html = "for n in range(3):\n    display({'text/plain': str(n), 'text/html': 'x' * 7_000_000}, raw=True)"
    bundle = lab.cells(html, "import sys\nprint('two')\nprint('err', file=sys.stderr)", "3")
    assert run_recorded(bundle, RANK="1", WORLD_SIZE="2") == 0
    first, second, third = outputs_of(bundle).values()
    assert kinds_of(first)[:2] == [["text/html", "text/plain"]] * 2
    note = "not kept in the notebook: the outputs of this rank are larger than it may keep"
    assert first.outputs[2]["data"] == {"text/plain": f"2\n[{note}]"}
    assert [one["text"] for one in second.outputs] == ["two\n", "err\n"]
    assert third.outputs[0]["data"] == {"text/plain": "3"}
    assert third.ended_at is not None
    assert log_of(bundle).read_text().count(note) == 1


def test_a_full_disk_ends_the_record_and_not_the_run(lab: Laboratory):
    bundle = lab.cells("print('one')", "import resource, os\nprint('two')", "display('three')", "print('four')")
    record = log_of(bundle).with_suffix(".outputs.jsonl")
    record.parent.mkdir(parents=True)
    record.symlink_to("/dev/full")
    assert run_recorded(bundle) == 0
    text = log_of(bundle).read_text()
    # A link is never followed; the run goes on without the record.
    assert text.startswith("hyperpod: the outputs of cells are not recorded from here on:")
    assert text.endswith("one\ntwo\n'three'\nfour\n")


def test_outputs_without_end_are_cut_off_in_the_record(lab: Laboratory):
    bundle = lab.cells("import sys\nfor n in range(12_000):\n    display(n)\nprint('end')")
    assert run_recorded(bundle) == 0
    outputs = outputs_of(bundle)[1].outputs
    shown = [one for one in outputs if one["output_type"] == "display_data"]
    assert len(shown) == 10_000
    # What is displayed after that is there as text.
    text = outputs[-1]["text"]
    assert text.startswith("10000\nhyperpod: this cell has more than 10,000 outputs; ")
    assert text.endswith("11999\nend\n")


def test_a_widget_says_that_it_needs_a_kernel(lab: Laboratory):
    widget = "class W:\n    def _repr_mimebundle_(self, **_): return {'application/vnd.jupyter.widget-view+json': {'model_id': 'x'}, 'text/plain': 'W()'}\nW()"
    bundle = lab.cells(widget)
    assert run_recorded(bundle) == 0
    assert outputs_of(bundle)[1].outputs[0]["data"] == {
        "text/plain": "W()\n[a widget needs a kernel, which a job does not have]"
    }


def test_a_backend_of_the_user_is_left_alone(lab: Laboratory):
    bundle = lab.cells(
        "import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nplt.plot([1]);",
        "len(plt.get_fignums())",
    )
    assert run_recorded(bundle) == 0
    assert outputs_of(bundle)[1].outputs == []
    assert outputs_of(bundle)[2].outputs[0]["data"] == {"text/plain": "1"}


LOG = b"aaaabbbbcccc"


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"no json\n",
        b"[1, 2]\n",
        b'{"at": 1}\n{"at": -1, "cell": 1, "start": 0}\n',
        b'{"at": "1", "cell": 1, "start": 0}\n',
        b'{"at": 1, "cell": "1", "start": 0}\n',
        b'{"at": 1, "cell": 1, "start": "now"}\n',
        b'{"at": 0, "end": 1, "error": {}}\n{"at": 0, "data": {}, "output": "display_data"}\n',
        b'{"at": 0, "cell": 1, "start": 0}\n' * 3,
        b'{"at": 99999999999999999999999, "cell": 1, "start": 0}\n{"at": 5, "stream": "stdin"}\n',
        b'{"at": 0, "cell": 1, "start": 0}\n{"at": 9, "to": 2, "data": {"text/html": [1], "x": null}, "metadata": 3}\n',
        b'{"at": 0, "cell": 1, "start": 0}\n{"at": 3, "end": null, "error": {"traceback": [1, null]}}\n',
        b'{"at": 0, "cell": 1, "start": 0}\n{"at": 3, "clear": "x"}\n{"at": 1, "stream": "stderr"}\n{"at": 2, "to": tru',
        b'{"at":' + b"[" * 100_000,
    ],
)
def test_a_hostile_record_gives_a_valid_notebook(record: bytes):
    found = read_outputs(record.split(b"\n"), len(LOG), lambda begin, end: LOG[begin:end].decode())
    document = notebook_of("x", "y")
    for number, cell in enumerate(document["cells"], 1):
        cell["metadata"]["hyperpod"] = {"cell": number}
    fill_cells(document["cells"], found, str)
    nbformat.validate(nbformat.from_dict(document))


def test_all_outputs_together_have_a_limit():
    line = json.dumps({"at": 0, "to": 0, "output": "display_data", "data": {"text/html": "x" * (8 << 20)}})
    record = '{"at": 0, "cell": 1, "start": 0}\n' + f"{line}\n" * 12
    outputs = read_outputs(record.encode().split(b"\n"), 0, lambda *_: "")[1].outputs
    assert sum("text/html" in output["data"] for output in outputs) == 7
    assert "larger than 64 MiB" in outputs[-1]["data"]["text/plain"]


def shown(*events: dict[str, Any], log: int = 0) -> list[dict[str, Any]]:
    """The outputs of a cell with these events, of a log without end."""
    record = "".join(f"{json.dumps({'at': 0, **event})}\n" for event in events)
    text = f'{{"at": 0, "cell": 1, "start": 0}}\n{record}'
    return read_outputs(text.encode().split(b"\n"), log, lambda begin, end: "x" * (end - begin))[1].outputs


FIGURE: dict[str, Any] = {"output": "display_data", "data": {"image/png": "x" * (8 << 20)}, "display_id": "a"}


def test_what_was_replaced_does_not_count():
    (last,) = shown(*([{"clear": True}, FIGURE] * 20))
    assert last["data"] == FIGURE["data"]
    (last,) = shown(FIGURE, *([{**FIGURE, "output": "update"}] * 20))
    assert last["data"] == FIGURE["data"]
    # One that was cleared is updated in vain, and counts no more.
    gone = {**FIGURE, "output": "update"}
    (last,) = shown(FIGURE, {"clear": False}, *[gone] * 20, {**FIGURE, "display_id": "b"})
    assert last["data"] == FIGURE["data"]


def test_text_counts_and_all_that_follows_has_one_note():
    switches = [{"stream": name, "at": at << 20} for at, name in enumerate(("stderr", "stdout") * 100, 1)]
    *texts, note = shown(*switches, {"at": 1 << 30, "end": 1, "error": {"ename": "E"}}, log=1 << 30)
    assert note["ename"] == "E"
    assert "larger than 64 MiB" in texts.pop()["data"]["text/plain"]
    assert len(texts) == 63
    assert {len(one["text"]) for one in texts} == {1 << 20}


def test_a_record_has_no_more_events_than_a_rank_writes():
    switches = [{"stream": name, "at": at} for at, name in enumerate(("stderr", "stdout") * 6000)]
    following = [{"cell": 2, "start": 0, "at": 30_000}, {"at": 30_001, "end": 1}]
    record = [{"cell": 1, "start": 0, "at": 0}, *switches[:-1], {"end": 1, "at": 30_000}, *following]
    data = b"\n" * 1000 + "\n".join(map(json.dumps, record)).encode()
    cells = read_outputs(data.split(b"\n"), 30_001, lambda begin, end: "x" * (end - begin))
    assert len(cells[1].outputs) == 10_000
    assert len(cells[1].outputs[-1]["text"]) > 20_000
    # What the last event said of the stream was not recorded: a cell begins with stdout.
    assert [one["name"] for one in cells[2].outputs] == ["stdout"]
