"""Submit to a real Kubernetes: from the call to the job's object; a raw POST of the same manifest, the kubernetes client and kubectl beside it, on the same cluster in turn.

Warm: calls in one Python process after its first one. Cold: a command's whole time. Jobs are held, so that none takes time from the next.

python benchmarks/bench_kubernetes_submit.py [--json] [--quick]

HYPERPOD_TEST_KUBECONFIG and HYPERPOD_TEST_PARTITION name a cluster in place of one of its own (docs/testing.md).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT)]

from kubernetes_users import user_of  # noqa: E402
from log_fixtures import ROUNDS, arguments, median, report  # noqa: E402

from tests.kubernetes.cluster import KubernetesTestbed, of_the_user, running  # noqa: E402

WARM = 12

HELD = {"spec": {"runPolicy": {"suspend": True}}}

LOOP = f"""
import copy, json, sys, time, uuid
manifest = json.load(open(sys.argv[1]))
def another():
    made = copy.deepcopy(manifest)
    made["metadata"]["name"] = "run-" + uuid.uuid4().hex[:20]
    return made
def measure(submit):
    times = []
    for number in range({WARM}):
        begin = time.perf_counter()
        submit()
        times.append(time.perf_counter() - begin)
    print(json.dumps(times))
"""

WAYS = {
    "raw POST": """
import asyncio
from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.engines.kubernetes.api.access import load_access
import httpx
access = load_access(KubernetesCluster(orchestrator="kubernetes"))
client = httpx.Client(base_url=access.server, verify=access.verify, headers=access.headers())
path = "/apis/kubeflow.org/v1/namespaces/%s/pytorchjobs" % manifest["metadata"]["namespace"]
def submit():
    client.post(path, json=another(), params={"fieldValidation": "Strict"}).raise_for_status()
measure(submit)
""",
    "ours": """
import hyperpod_jlab
measure(lambda: hyperpod_jlab.submit(command="true"))
""",
    "kubernetes client": """
from kubernetes import client, config
config.load_kube_config()
api = client.CustomObjectsApi()
def submit():
    made = another()
    api.create_namespaced_custom_object("kubeflow.org", "v1", made["metadata"]["namespace"], "pytorchjobs", made)
measure(submit)
""",
}
"""How one run is sent, by name; ``measure`` prints the seconds that each took."""

COLD = {
    "kubectl create, cold": ("kubectl", "create", "-f"),
    "ours, hpj submit, cold": (str(PROJECT / ".venv/bin/hpj"), "submit", "-c", "true"),
}


def manifest(environment: dict[str, str], home: Path) -> Path:
    """What ours sends, as others send it."""
    words = [*COLD["ours, hpj submit, cold"], "--dry-run", "--json"]
    shown = json.loads(_printed(words, environment, home))
    import yaml

    path = home / "manifest.json"
    path.write_text(json.dumps(yaml.safe_load(shown["rendered"])))
    return path


def _printed(words: list[str], environment: dict[str, str], home: Path) -> str:
    done = subprocess.run(words, check=False, env=environment, cwd=home, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def cold(name: str, environment: dict[str, str], home: Path, path: Path) -> float:
    """A command's time, in ms."""
    words = list(COLD[name])
    if words[0] == "kubectl":
        made = json.loads(path.read_text())
        made["metadata"]["name"] = f"run-{uuid.uuid4().hex[:20]}"
        another = home / "another.json"
        another.write_text(json.dumps(made))
        words.append(str(another))
    begin = time.perf_counter()
    _printed(words, environment, home)
    return (time.perf_counter() - begin) * 1000


def measure(cluster: KubernetesTestbed, rounds: int) -> list[dict[str, Any]]:
    """Medians, one round of each way after the other."""
    first: dict[str, list[float]] = {name: [] for name in WAYS}
    warm: dict[str, list[float]] = {name: [] for name in WAYS}
    alone: dict[str, list[float]] = {name: [] for name in COLD}
    with user_of(cluster, patch=HELD) as (home, environment, _):
        path = manifest(environment, home)
        for _ in range(rounds):
            for name, code in WAYS.items():
                said = _printed([sys.executable, "-c", LOOP + code, str(path)], environment, home)
                took = [seconds * 1000 for seconds in json.loads(said.splitlines()[-1])]
                first[name].append(took[0])
                warm[name].append(median(took[1:]))
            for name in COLD:
                alone[name].append(cold(name, environment, home, path))
    rows = [
        {"what": name, "first, ms": round(median(first[name])), "warm, ms": round(median(warm[name]), 1)}
        for name in first
    ]
    rows += [{"what": name, "first, ms": round(median(found))} for name, found in alone.items()]
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    theirs = of_the_user()
    if theirs is not None:
        rows = measure(theirs, rounds)
    else:
        with running() as cluster:
            rows = measure(cluster, rounds)
    report(options, f"Submit to Kubernetes, median of {rounds}", rows)


if __name__ == "__main__":
    main()
