"""The place that `make demo ARGS=--hyperpod` makes: a run goes through it, JupyterLab comes up in it, and nothing of it is left."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from hyperpod_jlab.aws.permissions import FEATURES
from tests.examples.conftest import ROOT
from tests.kubernetes.cluster import build
from tests.slurm.cluster import install

HPJ = Path(sys.executable).parent / "hpj"
DEMO = """
import sys
sys.path.insert(0, "scripts")
import demo_hyperpod, demo_lab
with demo_hyperpod.hyperpod_testbed(kubernetes=sys.argv[1:] == ["kubernetes"]) as place:
    print(place.environment, place.kill_kubernetes, sep="\\n", flush=True)
    sys.exit(demo_lab.serve())
"""


@contextlib.contextmanager
def started(environment, *words):
    """The place, which ends when the test fails."""
    with subprocess.Popen(
        [sys.executable, "-c", DEMO, *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as demo:
        try:
            yield demo
        except BaseException:
            demo.terminate()
            raise


@pytest.mark.slurm
@pytest.mark.full
@pytest.mark.timeout(240)
def test_it_is_a_space_of_studio_with_a_cluster_and_leaves_nothing(environment):
    install("22.05")
    with started(environment) as demo:
        file = Path(demo.stdout.readline().strip())
        url = next(found[0] for line in demo.stdout if (found := re.findall(r"http\S+", line)))
        variables = in_space(environment, file)

        def hpj(*words, code=0):
            command = [HPJ, *words, "--json"]
            done = subprocess.run(command, env=variables, capture_output=True, text=True)
            assert done.returncode == code, done.stdout + done.stderr
            return json.loads(done.stdout)

        check_place(hpj)
        token = url.rpartition("token=")[2]
        asked = urllib.request.Request(
            f"{url.partition('/lab/')[0]}/hyperpod/api/v1/clusters", headers={"Authorization": f"token {token}"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            listed = json.load(answer)["clusters"]
        assert {one["name"] for one in listed if one["configured"]} == {"local", "ml-slurm"}
        check_rights(hpj, variables)
        demo.send_signal(signal.SIGHUP)
        assert demo.wait(60) == 128 + signal.SIGHUP
    assert not file.parent.exists()
    assert processes_of(file.parent) == []


@pytest.mark.kubernetes
@pytest.mark.full
@pytest.mark.timeout(400)
def test_it_has_a_cluster_on_eks_too(environment):
    """Its user comes in by EKS and an access entry, sends a run, and is no administrator."""
    install("22.05")
    build("training-operator")
    environment.pop("XDG_CACHE_HOME")  # what is built lies in the user's own
    with started(environment, "kubernetes") as demo:
        file = Path(demo.stdout.readline().strip())
        assert demo.stdout.readline().startswith("env -u XDG_CACHE_HOME /")
        next(line for line in demo.stdout if "http" in line)
        variables = in_space(environment, file)

        def hpj(*words, code=0):
            command = [HPJ, *words, "--json"]
            done = subprocess.run(command, env=variables, capture_output=True, text=True)
            assert done.returncode == code, done.stdout + done.stderr
            return json.loads(done.stdout or done.stderr)

        listed = {one["name"]: one for one in hpj("clusters")["clusters"]}
        assert listed["ml-eks"]["configured"]
        assert listed["ml-eks"]["hyperpod"]["configured_as"] == ["ml-eks"]
        rows = hpj("nodes", "--cluster", "ml-eks")["nodes"]
        assert [row["name"] for row in rows] == [f"hyperpod-{row['instance']}" for row in rows]
        words = ("-c", "pwd; hostname", "--cluster", "ml-eks", "--nodes", "2", "--gpus-per-node", "4")
        run = hpj("submit", *words, "--no-project-files", "--wait")
        assert run["state"] == "succeeded"
        node = rows[0]["name"]
        refused = hpj("node", "drain", node, "--cluster", "ml-eks", "--reason", "x", "--yes", code=4)
        assert "patch" in json.dumps(refused)
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(90) == 128 + signal.SIGTERM
    assert not file.parent.exists()
    assert processes_of(file.parent) == []


def check_rights(hpj, variables):
    """The space's role may do what the policy for all features says, which is for one region, and nothing else."""
    names = [feature.name for feature in FEATURES]
    granted = json.dumps(hpj("admin", "policy", *names))
    assert "sagemaker:BatchReplaceClusterNodes" in granted
    ask = "import boto3; boto3.client('sagemaker', '{}').describe_cluster(ClusterName='ml-slurm')"
    for region, words in (("us-west-2", ""), ("eu-west-1", "not authorized to perform")):
        command = [sys.executable, "-c", ask.format(region)]
        asked = subprocess.run(command, env=variables, capture_output=True, text=True)
        assert (asked.returncode == 0) == (not words), asked.stderr
        assert words in asked.stderr


def check_place(hpj):
    checks = {one["name"]: one for one in hpj("doctor")["checks"]}
    assert checks["space"]["evidence"] == "work is a private space of alice"
    assert "(its /alice)" in checks["FSx for Lustre"]["evidence"]
    assert "ml-slurm (slurm, in-service, its file system is mounted here)" in (checks["HyperPod"]["evidence"])
    words = ("-c", "pwd; hostname", "--nodes", "2", "--queue", "train", "--time-limit", "5m")
    run = hpj("submit", *words, "--wait")
    assert run["state"] == "succeeded"
    assert "/fsx/alice/" in json.dumps(hpj("show", run["run_id"]))
    rows = hpj("nodes", "--cluster", "ml-slurm")["nodes"]
    joined = {row["name"]: row["instance"] for row in rows if row["name"] != row["instance"]}
    told = hpj("node-logs", joined["ip-10-0-0-1"], "--cluster", "ml-slurm", "--tail", "1")
    assert "provisioning scripts completed" in told["line"]
    assert sorted(joined) == [f"ip-10-0-0-{number}" for number in range(1, 5)]
    events = hpj("events", "--cluster", "research-eks")["events"]
    assert sum("is being launched" in one["description"] for one in events) >= 2


def in_space(environment, file):
    """The environment of a shell that has read the file."""
    command = ["bash", "-c", f". {file} && env -0"]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in text.stdout.split("\0") if line)


def processes_of(folder):
    """Processes that have to do with the folder, by command line or environment; they may take a moment to end."""
    end = time.monotonic() + 5
    while (found := [one.name for one in Path("/proc").iterdir() if told(one, folder)]) and (time.monotonic() < end):
        time.sleep(0.1)
    return found


def told(process, folder):
    try:
        words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    except OSError:
        return False
    return str(folder).encode() in words
