"""Folders are made only where the file system is mounted as a whole, and not on this machine's own disk."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.admin.fsx.folders import LocalFolderProvisioner
from hyperpod_jlab.admin.fsx.models import DesiredState
from hyperpod_jlab.admin.fsx.reconcile import Reconciler
from hyperpod_jlab.admin.fsx.request import StorageRequest
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.storage.mounts import VARIABLE
from testbed.aws.studio import ROOT_MOUNT, whole_file_system
from tests.admin.conftest import DOMAIN, FILE_SYSTEM

PER_USER = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM, "--partition-mode", "per-user")

OTHERWISE = [
    ("", "a folder of the mount at /"),
    ("31 22 0:41 / {} rw - tmpfs tmpfs rw\n", "is tmpfs, not Lustre"),
    ("31 22 0:41 / {} rw - lustre 10.0.1.2@tcp:/abcdefgh rw\n", "the mount name abcdefgh"),
    ("31 22 0:41 / {} rw - lustre 10.0.1.2@tcp:/x5kjbbmv/alice rw\n", "only a folder"),
    ("31 22 0:41 /alice {} rw - lustre 10.0.1.2@tcp:/x5kjbbmv rw\n", "only a folder"),
    # What was mounted over it hides it.
    (
        "31 22 0:41 / {0} rw - lustre 10.0.1.2@tcp:/x5kjbbmv rw\n32 31 0:9 / {0} rw - ext4 /dev/x rw\n",
        "is ext4, not Lustre",
    ),
]


@pytest.mark.parametrize(("line", "words"), OTHERWISE)
def test_what_is_not_the_whole_file_system_is_refused(account, hpj, tmp_path, monkeypatch, line, words):
    folder = tmp_path / "fsx"
    folder.mkdir()
    (tmp_path / "table").write_text(ROOT_MOUNT + line.format(folder))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "table"))
    for what in (("plan",), ("status",), ("apply", "--yes")):
        done = hpj("admin", *what, *PER_USER, "--mounted-at", str(folder), "--json")
        assert (done.code, done.error["code"]) == (2, "not_mounted")
        assert done.error["detail"]["field"] == "mounted_at"
        assert words in done.error["message"]
        assert "x5kjbbmv" in done.error["hint"]
    assert list(folder.iterdir()) == []
    assert account.profiles[DOMAIN, "alice"].file_systems == []


@pytest.mark.parametrize("source", ["fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com@tcp", "a:b"])
def test_servers_may_have_any_name(account, hpj, disk, monkeypatch, tmp_path, source):
    line = whole_file_system(disk).replace("10.0.1.2@tcp", source)
    (tmp_path / "table").write_text(ROOT_MOUNT + line)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "table"))
    (tmp_path / "way").symlink_to(disk)
    hpj("admin", "plan", *PER_USER, "--mounted-at", str(tmp_path / "way")).ok()


def test_what_is_unmounted_after_the_plan_gets_no_folders(account, no_aws, disk, tmp_path):
    wanted = DesiredState("per-user", profiles=frozenset({"alice"}))
    reconciler = Reconciler(
        Aws(), StorageRequest(DOMAIN, wanted, file_system=FILE_SYSTEM), provisioner=LocalFolderProvisioner(disk)
    )

    async def plan_and_apply():
        there, made = await reconciler.plan()
        (tmp_path / "fsx-mounts").write_text(ROOT_MOUNT)
        return {one.step.target: one async for one in reconciler.apply(there, made)}

    results = asyncio.run(plan_and_apply())
    assert results["folder /alice"].error.code == "not_mounted"
    assert results["profile alice"].step.state == "waits"
    assert list(disk.iterdir()) == []
