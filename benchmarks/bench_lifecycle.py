"""A space's lifecycle configuration: when it returns, and when the first job can be sent to a real Slurm, with packages on the partition.

A new space, and the same one started again. Needs root, and what the tests of `tests/lifecycle` need.

python benchmarks/bench_lifecycle.py [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from hyperpod_jlab.admin.lifecycle.scripts import ScriptSettings, render
from tests.lifecycle.conftest import Package
from tests.lifecycle.image import packages, studio_python, wheel
from tests.lifecycle.space import FILE_SYSTEM, HOME, POINT, Space
from tests.lifecycle.test_slurm import digest, prepare, user_1000
from tests.slurm.cluster import SlurmTestbed, running


def settings_of(cluster: SlurmTestbed, sha256: str) -> ScriptSettings:
    """Wheels and Debian packages of Slurm's client on the partition, munge."""
    return ScriptSettings(
        cluster="ml-cluster",
        region="us-west-2",
        orchestrator="slurm",
        file_system=FILE_SYSTEM,
        package="hyperpod-jlab",
        package_sha256=sha256,
        slurm_client="slurm/",
        slurm_client_sha256=digest(cluster.partition / "slurm" / "SHA256SUMS"),
        slurm_auth="munge",
        munge_key=f"{HOME}/munge.key",
        munge_key_sha256=digest(cluster.folder / "etc" / "munge.key"),
        slurm_bin="/usr/bin",
        slurm_conf=f"{POINT}/slurm.conf",
        python=cluster.python_on_nodes,
    )


def start(space: Space, script: str, key: bytes) -> dict[str, float]:
    """Seconds of one start, from its beginning to each of its ends."""
    with space as started:
        (started.home / "munge.key").write_bytes(key)
        os.chown(started.home / "munge.key", 1000, 100)
        (started.home / ".local" / "state" / "hyperpod-jlab" / "lifecycle.json").unlink(missing_ok=True)
        begin = time.monotonic()
        times = {"script returns": started.lifecycle(script)[0]}
        while True:
            states = {one["name"]: one["state"] for one in started.status().get("steps", ())}
            for name, what in (("package", "hpj and extension"), ("client", "ready to submit")):
                if states.get(name) == "done":
                    times.setdefault(what, time.monotonic() - begin)
            if "failed" in (states.get("package"), states.get("client")):
                raise SystemExit(started.log())
            if "ready to submit" in times:
                break
            time.sleep(0.02)
        done = started.run("hpj", "submit", "-c", "true", "--wait")
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        times["first job has ended"] = time.monotonic() - begin
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory(prefix="hpj-bench-") as folder:
        base = Path(folder)
        base.chmod(0o755)
        made = wheel(base / "dist")
        package = Package(base / "packages", packages(made, base / "packages"), made)
        with running(*user_1000(), nodes=1) as cluster:
            prepare(cluster, package)
            script = render("jupyterlab", settings_of(cluster, package.sha256))
            key = (cluster.folder / "etc" / "munge.key").read_bytes()
            space = Space(base / "space", cluster.partition, studio_python(), folder="/team")
            rows = {name: start(space, script, key) for name in ("new space", "started again")}
    if as_json:
        print(json.dumps(rows))
        return
    for name, times in rows.items():
        for what, took in times.items():
            print(f"{name:14} {what:20} {took:5.1f} s")


if __name__ == "__main__":
    main()
