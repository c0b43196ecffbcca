"""Which runs a notebook's cells went with."""

import zlib

NOTEBOOK = "work/train.ipynb"


def document(**texts):
    cells = [
        {
            "cell_type": "code",
            "id": identity,
            "metadata": {},
            "source": text,
            "outputs": [],
            "execution_count": None,
        }
        for identity, text in texts.items()
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


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
    found = {cell["id"]: (cell["run_id"], cell["checksum"]) for cell in answer["cells"]}
    assert found == {
        "a": (first["run_id"], f"{zlib.crc32(b'x = 1'):08x}"),
        "b": (second["run_id"], f"{zlib.crc32(b'print(2)'):08x}"),
    }
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
    assert await api.get(f"runs/{other['run_id']}/cells") == {
        "notebook": None,
        "path": None,
        "cells": [],
    }


async def test_a_notebook_outside_the_root_is_refused(api):
    status, error = await api.request("GET", "cells", query={"notebook": "../x.ipynb"})
    assert (status, error["code"], error["detail"]["field"]) == (400, "outside_root", "notebook")
    status, error = await api.request("GET", "cells")
    assert (status, error["detail"]["field"]) == (400, "notebook")
