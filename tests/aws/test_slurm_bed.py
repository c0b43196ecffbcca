"""A real Slurm attached to the AWS endpoint: a slurmd that is killed is an instance that failed and is replaced."""

from __future__ import annotations

import subprocess
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import pytest

from testbed.aws.attached import BedError
from testbed.aws.slurm_bed import PREFIX, SCRIPT, AttachedSlurm, nodes_of, slurm_bed
from tests.aws.conftest import REGION
from tests.slurm.cluster import install

FIRST = f"{PREFIX}1"


@pytest.fixture(scope="module")
def bed():
    install("22.05")
    with tempfile.TemporaryDirectory(prefix="hpj-bed-") as folder:
        Path(folder).chmod(0o755)  # munge's socket is everybody's
        with slurm_bed(Path(folder) / "slurm", "--nodes", "2") as made:
            yield made


@pytest.fixture
def attached(endpoint, bed, home):
    home.config.write_text(
        '[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n'
        f'slurm_conf = "{bed}/etc/slurm.conf"\n'
    )
    with AttachedSlurm(endpoint, bed, REGION) as made:
        yield made
    assert made.problems == []


@pytest.fixture
def rows(hpj):
    """What ``hpj nodes --hyperpod`` shows of the compute nodes: state at AWS, node, state in Slurm, remark; by instance id."""

    def found():
        told = hpj("nodes", "--hyperpod", "ml-cluster", "--json").ok().json["nodes"]
        return {
            row["instance"]["name"]: (
                row["instance"]["state"],
                (row["node"] or {}).get("name"),
                row["remark"],
            )
            for row in told
            if row["instance"]["instance_group"] != "controller-machine"
        }

    return found


def until(done, seconds=30):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.1)


def sinfo(bed, node):
    command = [SCRIPT, "exec", bed, "ctl", "sinfo", "-h", "-N", "-n", node, "-o", "%T"]
    return set(subprocess.run(command, capture_output=True, text=True).stdout.split())


def slurmd_of(bed, node):
    try:
        return int((bed / "run" / f"slurmd-{node}.pid").read_text())
    except (FileNotFoundError, ValueError):  # it does not run, or is about to
        return None


def test_a_killed_slurmd_is_a_failed_instance_and_comes_back_as_another(attached, bed, rows):
    first = rows()
    assert sorted(first.values()) == [
        ("running", f"{PREFIX}1", None),
        ("running", f"{PREFIX}2", None),
    ]
    (old,) = [name for name, row in first.items() if row[1] == FIRST]
    pid = slurmd_of(bed, FIRST)
    subprocess.run([SCRIPT, "node-kill", bed, FIRST], check=True)
    until(lambda: rows()[old][0] == "failed")

    attached.endpoint.advance(timedelta(seconds=15))
    both = rows()
    (new,) = set(both) - set(first)
    assert both[old][0] == "ending"
    assert f"its place is taken by {new}" in both[old][2]
    assert both[new][0] == "starting"

    attached.endpoint.advance(timedelta(minutes=25))
    # Slurm calls a node idle for some seconds after its end, so it is the process that tells.
    until(lambda: slurmd_of(bed, FIRST) not in {None, pid})
    until(lambda: sinfo(bed, FIRST) == {"idle"})
    assert rows() == {
        new: ("running", FIRST, None),
        **{name: row for name, row in first.items() if name != old},
    }
    time.sleep(1)  # a node that was just started is not taken for a failed one
    assert rows()[new][0] == "running"


def test_a_replacement_that_somebody_asks_for_ends_the_slurmd(attached, bed, rows):
    node = next(one for one in attached.cluster.nodes if one.address == "10.0.0.2")
    pid = slurmd_of(bed, f"{PREFIX}2")
    with attached.endpoint.changing():
        attached.lifecycle.replace(node)
    until(lambda: slurmd_of(bed, f"{PREFIX}2") is None)
    attached.endpoint.advance(timedelta(minutes=25))
    until(lambda: slurmd_of(bed, f"{PREFIX}2") not in {None, pid})
    until(lambda: sinfo(bed, f"{PREFIX}2") == {"idle"})
    assert len(rows()) == 2


def test_a_folder_that_is_no_such_testbed(tmp_path):
    with pytest.raises(BedError, match="--prefix"):
        nodes_of(tmp_path)
