"""Lists of hosts."""

import subprocess
from pathlib import Path

import pytest

from hyperpod_jlab.engines.slurm.rows import expand
from tests.slurm.cluster import SlurmTestbed

LISTS = {
    "": (),
    "(null)": (),
    "None": (),
    "node1": ("node1",),
    "node1,node2": ("node1", "node2"),
    "node[1-3,5]": ("node1", "node2", "node3", "node5"),
    "node[1-3,5],x[01-03]-ib": ("node1", "node2", "node3", "node5", "x01-ib", "x02-ib", "x03-ib"),
    "n[08-11]": ("n08", "n09", "n10", "n11"),
    "n[098-101]": ("n098", "n099", "n100", "n101"),
    "r[1-2]n[1-2]": ("r1n1", "r1n2", "r2n1", "r2n2"),
    "ip-10-1-2-[3-4]": ("ip-10-1-2-3", "ip-10-1-2-4"),
    "node[2,1]": ("node2", "node1"),
    "node[1-2],node2": ("node1", "node2"),
}

BROKEN = ["node[1-", "node[a-c]", "node[3-1]", "node[]", "node[1-999999999]", "node[1-9999][1-9999]"]


@pytest.mark.parametrize("text", LISTS)
def test_names_of_a_list(text: str) -> None:
    assert expand(text) == LISTS[text]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_list_is_one_name(text: str) -> None:
    assert expand(text) == (text,)


def test_slurm_expands_alike(slurm_cluster: SlurmTestbed) -> None:
    # It knows no words behind brackets, and keeps repeats.
    others = {"node[1-3,5],x[01-03]-ib", "node[1-2],node2"}
    for text in [text for text, names in LISTS.items() if names and text not in others]:
        said = subprocess.run(
            [Path(slurm_cluster.folder) / "bin" / "scontrol", "show", "hostnames", text],
            env=slurm_cluster.environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert tuple(said.split()) == expand(text)
