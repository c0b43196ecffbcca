"""Which runs a notebook's cells went with."""

import json
import threading
import zlib
from pathlib import Path

import pytest

from hyperpod_jlab.run import routes as run_content
from hyperpod_jlab.run import submit_routes as cells
from hyperpod_jlab.run import submit_routes as submit
from hyperpod_jlab.storage.records import BundleReader

NOTEBOOK = "work/train.ipynb"


def document(**texts):
    made = [
        {"cell_type": "code", "id": identity, "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        for identity, text in texts.items()
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}


async def send(api, content, cell_ids, **more):
    source = {"kind": "notebook", "path": "train.ipynb", "cell_ids": cell_ids}
    body = {"spec": {"source": source, **more}, "base": "work", "notebook": content}
    status, run = await api.request("POST", "runs", body)
    assert status == 201, run
    return await api.ended(run["run_id"])


async def test_each_cell_knows_its_newest_run(api, jp_root_dir):
    (jp_root_dir / "work").mkdir()
    assert await api.get("cells", notebook=NOTEBOOK) == {"runs": [], "cells": []}
    first = await send(api, document(a="x = 1", b="print(x)  # é"), ["a", "b"])
    second = await send(api, document(a="x = 1", b="print(2)"), ["b"], name="second")
    answer = await api.get("cells", notebook=NOTEBOOK)
    assert [run["run_id"] for run in answer["runs"]] == [second["run_id"], first["run_id"]]
    assert answer["cells"] == [
        {"id": "b", "run_id": second["run_id"], "checksum": f"{zlib.crc32(b'print(2)'):08x}", "number": 2},
        {"id": "a", "run_id": first["run_id"], "checksum": f"{zlib.crc32(b'x = 1'):08x}", "number": 1},
    ]
    assert (await api.get("cells", notebook="work/other.ipynb"))["cells"] == []


async def test_a_run_shows_its_cells_as_they_were_sent(api, jp_root_dir):
    (jp_root_dir / "work").mkdir()
    text = "%time print('é')\n"
    run = await send(api, document(a="x = 1", b=text), ["b"])
    answer = await api.get(f"runs/{run['run_id']}/cells")
    assert answer["notebook"].endswith("/work/train.ipynb")
    assert answer["path"] == "work/train.ipynb"
    checksum = f"{zlib.crc32(text.encode()):08x}"
    assert answer["cells"] == [{"number": 2, "id": "b", "checksum": checksum, "text": text}]
    other = await api.submit("true")
    assert await api.get(f"runs/{other['run_id']}/cells") == {"notebook": None, "path": None, "cells": []}


async def test_the_list_of_files_is_read_once_for_all_cells(api, jp_root_dir, monkeypatch):
    (jp_root_dir / "work").mkdir()
    run = await send(api, document(a="x = 1", b="x = 2", c="x = 3"), ["a", "b", "c"])
    files, reads = BundleReader.files, []

    def noted(bundle):
        reads.append(bundle)
        return files(bundle)

    monkeypatch.setattr(BundleReader, "files", noted)
    answer = await api.get(f"runs/{run['run_id']}/cells")
    assert [cell["text"] for cell in answer["cells"]] == ["x = 1", "x = 2", "x = 3"]
    assert len(reads) == 1


@pytest.mark.parametrize("how", ["gone", "no text"])
async def test_a_cell_that_cannot_be_read_hides_no_other(api, jp_root_dir, how):
    (jp_root_dir / "work").mkdir()
    run = await send(api, document(a="x = 1", b="x = 2"), ["a", "b"])
    bundle = Path(run["bundle"])
    listed = json.loads((bundle / "files.json").read_text())["files"]
    (entry,) = [one for one in listed if one["path"].endswith("cell-01.py")]
    for path in (bundle / entry["path"], *bundle.parents[2].glob(f"code/*/{entry['digest']}*")):
        path.chmod(0o600)
        path.write_bytes(b"\0")
        if how == "gone":
            path.unlink()
    answer = await api.get(f"runs/{run['run_id']}/cells")
    assert [cell["text"] for cell in answer["cells"]] == [None, "x = 2"]


async def test_long_answers_are_not_made_on_the_event_loop(api, jp_root_dir, monkeypatch):
    """All other answers of the server would wait for them."""
    threads = []
    for module, name in ((cells, "to_owned_run"), (run_content, "to_owned_run"), (submit, "_item_text")):
        make = getattr(module, name)

        def noted(*given, _make=make):
            threads.append(threading.current_thread())
            return _make(*given)

        monkeypatch.setattr(module, name, noted)
    (jp_root_dir / "work").mkdir()
    await send(api, document(a="x = 1"), ["a"])
    array = await api.submit("true", array="0-1")

    def made():
        found = [*threads]
        threads.clear()
        return found

    made()  # an answer of one run may be made anywhere
    assert (await api.get("cells", notebook=NOTEBOOK))["runs"]
    listed = made()
    assert (await api.get(f"runs/{array['run_id']}/children"))["runs"]
    children = made()
    spec = {"source": {"kind": "command", "command": "true"}}
    assert (await api.request("POST", "runs/preview", {"spec": spec}))[0] == 200
    preview = made()
    assert listed
    assert children
    assert preview
    assert threading.current_thread() not in {*listed, *children, *preview}


async def test_a_notebook_outside_the_root_is_refused(api):
    status, error = await api.request("GET", "cells", query={"notebook": "../x.ipynb"})
    assert (status, error["code"], error["detail"]["field"]) == (400, "outside_root", "notebook")
    status, error = await api.request("GET", "cells")
    assert (status, error["detail"]["field"]) == (400, "notebook")


async def test_cells_that_cannot_be_read_once_are_there_the_next_time(api, jp_root_dir):
    (jp_root_dir / "work").mkdir()
    run = await send(api, document(a="x = 1"), ["a"])
    listed = Path(run["bundle"]) / "files.json"
    aside = listed.rename(listed.with_name("aside"))
    assert (await api.get("cells", notebook=NOTEBOOK))["cells"] == []
    aside.rename(listed)
    (cell,) = (await api.get("cells", notebook=NOTEBOOK))["cells"]
    assert cell["run_id"] == run["run_id"]
