"""The executed notebook of a run on a real Kubernetes."""

from __future__ import annotations

import json

from hyperpod_jlab.features.notebook.service import read_executed_notebook
from tests.capture.bundles import notebook_of
from tests.kubernetes.session_fixtures import KubernetesSession

PICTURE = "class P:\n    def _repr_png_(self): return bytes(range(256)) * 2000\n    def __repr__(self): return 'P'\nP()"


async def test_outputs_of_all_ranks_arrive(session: KubernetesSession) -> None:
    cells = (
        "import os, sys\nprint('rank', os.environ['RANK'])\nprint('error', file=sys.stderr)",
        "from IPython.display import HTML\nHTML('<b>é</b>')",
        PICTURE,
        "lr",
    )
    path = session.folder / "train.ipynb"
    path.write_text(json.dumps(notebook_of(*cells)))
    source = {"kind": "notebook", "path": str(path), "parameters": {"lr": 0.5}}
    run_id = await session.submit(source=source, resources={"nodes": 2}, launcher="python", files={"project": False})
    run = await session.ended(run_id)
    assert run.state == "succeeded"
    executed = await read_executed_notebook(session.hyperpod, run_id, rank=1)
    outputs = [cell["outputs"] for cell in executed.document["cells"]]
    assert [one["text"] for one in outputs[1]] == ["rank 1\n", "error\n"]
    assert outputs[2][0]["data"]["text/html"] == "<b>é</b>"
    assert len(outputs[3][0]["data"]["image/png"]) == 4 * -(-512_000 // 3)
    assert outputs[4][0]["data"] == {"text/plain": "0.5"}
    first = await read_executed_notebook(session.hyperpod, run_id)
    assert first.document["cells"][1]["outputs"][0]["text"] == "rank 0\n"
