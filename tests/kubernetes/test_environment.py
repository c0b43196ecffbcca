"""An environment that travels with a run to pods of a real Kubernetes, whose image has Python but no uv."""

import json
import shutil
from pathlib import Path

import pytest
import uv

from tests.kubernetes.session_fixtures import MOUNT, KubernetesSession
from tests.tiny_packages import wheel

UV = Path(uv.find_uv_bin())


async def test_two_pods_share_one_on_the_partition(session: KubernetesSession) -> None:
    wheel(session.partition / "packages", "alpha")
    (session.partition / "bin").mkdir()
    shutil.copy(UV, session.partition / "bin" / "uv")
    lines = f"--no-index\n--find-links {MOUNT}/packages\nalpha\n"
    (session.folder / "requirements.txt").write_text(lines)
    environment = {"capture": "requirements", "variables": {"PATH": f"{MOUNT}/bin:/usr/local/bin:/usr/bin:/bin"}}
    command = "python -c 'import alpha, sys; print(alpha.VERSION, sys.prefix)'"
    two = {"nodes": 2}
    run_id = await session.submit(command, resources=two, environment=environment)
    run = await session.ended(run_id)
    logs = [session.log(run_id, node) for node in (0, 1)]
    assert run.state == "succeeded", (run.status, logs)
    assert logs[0].startswith(f"1.0 {MOUNT}/.hyperpod/environments/")
    assert logs[0] == logs[1]


@pytest.mark.full
async def test_without_an_installer_the_run_says_what_the_image_needs(session: KubernetesSession) -> None:
    (session.folder / "requirements.txt").write_text("--no-index\nalpha\n")
    run_id = await session.submit("true", environment={"capture": "requirements"})
    run = await session.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 86)
    record = session.records(run_id) / "status" / "attempt-1" / "node-0.json"
    error = json.loads(record.read_text())["error"]
    assert error["code"] == "environment_failed"
    assert error["hint"].startswith("install uv on the nodes or in the image")
