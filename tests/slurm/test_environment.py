"""An environment that travels with a run of two nodes on a real Slurm."""

import os
import secrets
from pathlib import Path

import uv

from tests.tiny_packages import wheel

UV = Path(uv.find_uv_bin())


async def test_one_node_builds_and_both_use_it(session):
    # A name of its own, so that the environment is new also where an earlier test shares the partition.
    name = f"packages-{secrets.token_hex(4)}"
    packages = session.hyperpod.partition.root / name
    wheel(packages, "alpha")
    there = session.hyperpod.engines.get().paths.remote / name
    lines = f"--no-index\n--find-links {there}\nalpha\n"
    (session.folder / "requirements.txt").write_text(lines)
    environment = {
        "capture": "requirements",
        "variables": {"PATH": f"{UV.parent}:{os.defpath}", "UV_CACHE_DIR": f"{there}/cache"},
    }
    command = "python -c 'import alpha, sys; print(alpha.VERSION, sys.prefix)'"
    two = {"nodes": 2}
    run_id = await session.submit(command, resources=two, environment=environment)
    run = await session.ended(run_id)
    logs = [session.log(run_id, node) for node in (0, 1)]
    assert run.state == "succeeded", (run.status, logs)
    assert logs[0].startswith("1.0 ")
    assert logs[0] == logs[1]
    folder = session.records(run_id) / "logs" / "attempt-1"
    texts = [(folder / f"node-{node}.log").read_text() for node in (0, 1)]
    assert sum("was built in" in text for text in texts) == 1
    assert sum("using the environment" in text for text in texts) == 2
