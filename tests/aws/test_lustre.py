"""The Lustre file systems that are mounted here, by the kernel's table."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_jlab.aws.file_systems import LustreMount, is_mount_of, lustre_mounts
from hyperpod_jlab.core.hyperpod import LustreStorage
from hyperpod_jlab.storage.mounts import all_mounts, mount_of

STUDIO = "/mnt/custom-file-systems/fsx_lustre/fs-0123456789abcdef0"
TABLE = f"""\
22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:40 / {STUDIO} rw,noatime - lustre 10.0.1.2@tcp:/x5kjbbmv/alice rw,flock
31 22 0:41 / /fsx ro,noatime shared:3 master:1 - lustre 10.0.1.3@tcp:/fsx rw
32 22 0:42 / /mnt/with\\040blank rw - lustre 10.0.1.4@o2ib:/abcdabcd/my\\040data/ rw
33 22 0:43 / /home/x rw - nfs4 127.0.0.1:/ rw
34 22 0:44 / /odd rw - lustre nothing-that-is-known rw
"""


@pytest.fixture
def table(tmp_path):
    made = tmp_path / "mountinfo"
    made.write_text(TABLE)
    return made


def test_all_of_them_with_the_partition_that_is_mounted(table):
    assert lustre_mounts(table) == [
        LustreMount(Path(STUDIO), "10.0.1.2@tcp", "x5kjbbmv", "/alice", "fs-0123456789abcdef0"),
        LustreMount(Path("/fsx"), "10.0.1.3@tcp", "fsx", "/", read_only=True),
        LustreMount(Path("/mnt/with blank"), "10.0.1.4@o2ib", "abcdabcd", "/my data"),
    ]


def test_where_there_is_no_table_there_are_none(tmp_path):
    assert lustre_mounts(tmp_path / "none") == []
    with pytest.raises(OSError, match="none"):
        all_mounts(tmp_path / "none")


def test_this_machine_has_mounts_and_this_file_lies_on_one():
    points = [mount.point for mount in all_mounts()]
    assert "/proc" in points
    assert mount_of(Path(__file__)).point in points


@pytest.mark.parametrize(
    ("dns_name", "mount_name", "same"),
    [
        ("fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com", "x5kjbbmv", True),
        ("fs-0123456789abcdef0.fsx.cn-north-1.amazonaws.com.cn", "x5kjbbmv", True),
        ("fs-0fffffffffffffff0.fsx.us-west-2.amazonaws.com", "x5kjbbmv", False),
        ("fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com", "another1", False),
        ("lustre.example.org", "x5kjbbmv", True),  # only the mount name is known
    ],
)
def test_the_same_file_system_by_id_and_mount_name(table, dns_name, mount_name, same):
    mount = lustre_mounts(table)[0]
    assert is_mount_of(mount, LustreStorage(dns_name, mount_name)) is same


def test_the_mount_name_that_many_have_proves_nothing(table):
    mount = lustre_mounts(table)[1]
    assert not is_mount_of(mount, LustreStorage("fs-0123456789abcdef0.fsx.x.amazonaws.com", "fsx"))
