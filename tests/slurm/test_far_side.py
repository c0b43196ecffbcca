"""Whether interpreter and bundles can be used over there: by paths, by links, by users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_jlab.engines.slurm.preflight import is_local_only
from hyperpod_jlab.storage.partition import Partition
from tests.slurm.asked import Asked, folder_of
from tests.slurm.cluster import SlurmTestbed

pytest_plugins = ["tests.slurm.preflight_fixtures"]


def test_a_python_that_is_not_on_the_partition(here: Asked):
    python = str(here.partition.root / "venv" / "bin" / "python")
    assert here.error(environment={"python": python}).code == "no_python"


def test_a_python_on_the_partition(here: Asked):
    python = here.partition.root / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    assert here.errors(environment={"python": str(python)}) == []


def test_a_python_in_a_home_folder(here: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert here.error(environment={"python": str(python)}).code == "python_outside"


def test_a_link_to_a_python_in_a_home_folder(here: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    link = here.partition.root / "linked"
    link.unlink(missing_ok=True)
    link.symlink_to(python)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "python_link" in here.codes("warning", environment={"python": str(link)})


@pytest.mark.parametrize("python", ["-a", "--help", "bin/python", "./python"])
def test_a_python_that_is_no_path(here: Asked, python: str):
    assert here.error(environment={"python": python}).code == "bad_python"


def test_a_python_is_looked_for_on_the_login_node(login: Callable[..., Asked]):
    error = login("root").error(environment={"python": "/opt/none/bin/python"})
    assert error.message == "no interpreter found at /opt/none/bin/python on the login node"


@pytest.mark.parametrize(("kind", "private"), [("ext4", True), ("overlay", True), ("nfs4", False), ("lustre", False)])
def test_a_home_on_a_network_file_system_is_shared(kind: str, private: bool):
    mounts = f"1 0 0:1 / / rw - overlay o rw\n2 1 0:2 / /home/al\\040ice rw shared:1 - {kind} x rw\n"
    assert is_local_only(Path("/home/al ice/venv/bin/python"), mounts) is private


# ------------------------------------------------------------------------------ three users


@pytest.mark.parametrize("user", ["alice", "bob"])
@pytest.mark.parametrize("shared", [False, True])
def test_jobs_of_another_user_are_let_in(login: Callable[..., Asked], user: str, shared: bool):
    assert login(user, shared=shared).errors() == []


@pytest.mark.parametrize("shared", [False, True])
def test_jobs_of_the_submitter_can(login: Callable[..., Asked], shared: bool):
    assert login("root", shared=shared).errors() == []


def test_a_partition_that_others_may_not_enter(login: Callable[..., Asked]):
    assert login("bob", "closed", shared=True, mode=0o700).error().code == "storage_denied"


def test_a_partition_that_is_not_over_there(slurm_cluster: SlurmTestbed):
    partition = Partition(folder_of(slurm_cluster, "preflight"), shared=True)
    asked = Asked(
        slurm_cluster,
        partition,
        transport="ssh",
        login_nodes=["alice@login1"],
        ssh_config=str(slurm_cluster.ssh_config),
        storage="/fsx/elsewhere",
    )
    assert asked.error().code == "partition_missing"
