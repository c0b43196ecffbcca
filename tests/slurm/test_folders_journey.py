"""An admin at a terminal: a domain of Studio, a file system, and a Slurm cluster whose job makes the folders."""

from __future__ import annotations

import os
import stat

import pytest

from hyperpod_jlab.admin.fsx import apply as applying
from testbed.aws.example import lustre
from testbed.aws.state import lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, account, endpoint, home, hpj, no_aws
from tests.aws.conftest import REGION
from tests.session import write_config
from tests.slurm.hyperpod_fixtures import settings_for

__all__ = ["account", "endpoint", "home", "hpj", "no_aws"]


@pytest.fixture
def words(account, slurm, transport, tmp_path, monkeypatch, home):
    """What is the same in all commands. The HyperPod cluster is known in the configuration by another name; AWS knows where its nodes have the file system."""
    mounted = lustre(REGION)
    mounted["FsxLustreConfig"]["MountPath"] = str(slurm.partition_on_nodes)
    cluster = account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    cluster.add_group("workers", "ml.g5.xlarge", 1, storage=[mounted])
    monkeypatch.setattr(applying, "POLL_S", 0.02)
    write_config(settings_for(slurm, transport, hyperpod="ml-cluster"), tmp_path / "config.toml")
    monkeypatch.setenv("HYPERPOD_CONFIG", str(tmp_path / "config.toml"))
    where = ("--domain", DOMAIN, "--cluster", "ml-cluster", "--partition-mode", "per-user")
    return (*where, "--folders", "slurm", "--cluster-user", "1000")


@pytest.mark.both_transports
def test_a_domain_is_wired_with_folders_by_a_job(account, hpj, slurm, words):
    root = slurm.partition
    (root / "carol").mkdir()
    os.chown(root / "carol", 20001, 20001)
    planned = hpj("admin", "plan", *words).ok().out
    assert "+ folder /alice: missing -> owner 200001:1001, mode 0700, ACL user:1000:rwx" in planned
    assert "! folder /carol: owner 20001:20001" in planned
    assert not (root / "alice").exists()

    done = hpj("admin", "apply", *words, "--yes")
    assert (done.code, "not done: folder /carol" in done.err) == (1, True)
    assert "folder /alice: owner 200001:1001, mode 0700, ACL user:1000:rwx" in done.out
    found = (root / "bob").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (200001, 1001, 0o770)
    assert account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]
    assert account.profiles[DOMAIN, "carol"].file_systems == []

    drift = hpj("admin", "status", *words)
    assert (drift.code, "/carol" in drift.out, "/alice" in drift.out) == (1, True, False)
    (root / "carol").rmdir()
    hpj("admin", "apply", *words, "--yes").ok()
    hpj("admin", "status", *words).ok()
    for name in ("alice", "bob", "carol"):
        (root / name).rmdir()


def test_a_place_that_aws_does_not_know_of(account, hpj, slurm, words):
    """Nor is it where nodes usually have it: nothing is mounted there."""
    account.clusters.clear()
    words = (*words, "--file-system", FILE_SYSTEM)
    done = hpj("admin", "plan", *words, "--json")
    assert (done.code, done.error["code"]) == (2, "not_mounted")
    assert "/fsx" in done.error["message"]
    assert "--mounted-at" in done.error["hint"]
    hpj("admin", "plan", *words, "--mounted-at", str(slurm.partition_on_nodes)).ok()


def test_a_controller_that_does_not_answer_changes_nothing(account, hpj, slurm, words):
    slurm.controller_kill()
    done = hpj("admin", "apply", *words, "--yes", "--json")
    assert (done.code, done.error["code"]) == (5, "controller_down")
    assert account.profiles[DOMAIN, "alice"].file_systems == []
