"""The executed notebook of a run on a real Slurm: ranks of two nodes, and one that is cancelled in the midst of a cell."""

from __future__ import annotations

import json

from hyperpod_jlab.features.notebook.service import read_executed_notebook
from tests.capture.bundles import notebook_of
from tests.slurm.hyperpod_fixtures import SlurmSession


async def test_outputs_of_two_nodes_and_a_cancelled_cell(session: SlurmSession) -> None:
    cells = (
        "import os, time\nprint('rank', os.environ['RANK'])",
        "{'rank': int(os.environ['RANK']), 'lr': lr}",
        "print('begun')\ntime.sleep(600)",
    )
    (session.folder / "train.ipynb").write_text(json.dumps(notebook_of(*cells)))
    run_id = await session.submit(
        source={"kind": "notebook", "path": "train.ipynb", "parameters": {"lr": 0.5}},
        resources={"nodes": 2},
        launcher="python",
    )

    async def texts(rank: int) -> list[str]:
        executed = await read_executed_notebook(session.hyperpod, run_id, rank)
        found = [cell["outputs"] for cell in executed.document["cells"]]
        return ["|".join(one.get("text") or str(one.get("data") or one["ename"]) for one in each) for each in found]

    # The test's own time limit ends this.
    while ((await texts(0))[3], (await texts(1))[3]) != ("begun\n", "begun\n"):
        assert (await session.hyperpod.runs.get(run_id)).state in ("waiting", "running")
    await session.hyperpod.runs.act(run_id, "cancel")
    await session.ended(run_id)
    for rank in (0, 1):
        value = str({"text/plain": str({"rank": rank, "lr": 0.5})})
        assert await texts(rank) == ["", f"rank {rank}\n", value, "begun\n|RunEnded"]
