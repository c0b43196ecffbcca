"""The partition: whom its folders belong to, and where things lie."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import InvalidInputError, StorageError
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.storage.bundles import make_bundle
from tests.storage.racing import race
from tests.storage.users import AS_ROOT, as_other


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refused(partition: Partition) -> StorageError:
    with pytest.raises(StorageError) as caught:
        partition.prepare()
    assert caught.value.code == "untrusted_folder"
    assert caught.value.hint
    return caught.value


def refused_for(root: Path) -> str:
    with pytest.raises(StorageError) as caught:
        Partition(root).prepare()
    return caught.value.code


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize(("shared", "expected"), [(False, 0o700), (True, 0o755)])
def test_folders_have_exactly_the_documented_modes(tmp_path, umask, shared, expected):
    before = os.umask(umask)
    try:
        partition = Partition(tmp_path / "a" / "fsx", shared=shared)
        partition.prepare()
    finally:
        os.umask(before)
    assert [mode(path) for path in (partition.folder, partition.runs, partition.content)] == [expected] * 3


def test_preparing_again_changes_nothing(tmp_path):
    partition = Partition(tmp_path)
    partition.prepare()
    before = partition.folder.stat()
    partition.prepare()
    assert partition.folder.stat() == before


@pytest.mark.parametrize("root", ["/proc/x/.local/share", "/dev/null/x"])
def test_a_root_that_cannot_be_made_is_named(root):
    with pytest.raises(StorageError) as caught:
        Partition(Path(root)).prepare()
    assert caught.value.exit_code == 2
    assert root in caught.value.message
    assert "[storage]" in str(caught.value.hint)


@AS_ROOT
def test_a_root_that_another_user_may_not_make_is_named():
    def prepare() -> tuple[str, int]:
        with pytest.raises(StorageError) as caught:
            Partition(Path("/no-home-there/.local/share")).prepare()
        assert "/no-home-there/.local/share" in caught.value.message
        return caught.value.code, caught.value.exit_code

    assert as_other(prepare) == ("storage_denied", 4)


def test_eight_prepare_at_once(tmp_path):
    for turn in range(10):
        partition = Partition(tmp_path / str(turn), shared=True)
        assert race(lambda _: partition.prepare()) == [None] * 8  # noqa: B023
        assert mode(partition.runs) == 0o755


def test_a_partition_that_is_shared_later_keeps_what_lay_there_before(tmp_path):
    before = make_bundle(Partition(tmp_path), "before")
    partition = Partition(tmp_path, shared=True)
    partition.prepare()
    assert [mode(path) for path in (partition.folder, partition.runs, partition.content)] == [0o755] * 3
    assert BundleReader(partition, "before").folder == before.folder
    make_bundle(partition, "later")
    later = BundleReader(Partition(tmp_path), "later")
    assert later.folder.is_relative_to(partition.folder)
    assert later.is_own


@pytest.mark.parametrize("name", ["", "runs", "code"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_symlink_is_refused(tmp_path, name, shared):
    partition = Partition(tmp_path / "fsx", shared=shared)
    partition.prepare()
    folder = partition.folder / name
    moved = tmp_path / "moved"
    folder.rename(moved)
    folder.symlink_to(moved)
    assert str(folder) in refused(partition).message


@AS_ROOT
@pytest.mark.parametrize("name", ["", "runs", "code"])
def test_a_foreign_owner_is_refused(tmp_path, name):
    partition = Partition(tmp_path)
    partition.prepare()
    os.chown(partition.folder / name, 12345, 12345)
    assert "12345" in refused(partition).message


@AS_ROOT
@pytest.mark.parametrize("name", ["", "runs", "code"])
def test_a_folder_that_another_user_took_beforehand_is_refused(tmp_path, name):
    partition = Partition(tmp_path, shared=True)
    partition.prepare()
    os.chown(partition.folder / name, 12345, 12345)
    with pytest.raises(StorageError) as caught:
        partition.prepare()
    assert caught.value.hint


@AS_ROOT
@pytest.mark.parametrize(
    ("above", "shared", "is_refused"),
    [
        (0o1777, True, False),
        (0o777, True, True),
        (0o777, False, True),
        (0o775, True, True),
        (0o775, False, False),
        (0o755, True, False),
    ],
)
def test_a_place_where_others_can_exchange_folders_is_refused(tmp_path, above, shared, is_refused):
    """Here one further up than the partition's root."""
    root = tmp_path / "fsx" / "inner"
    root.mkdir(parents=True)
    (tmp_path / "fsx").chmod(above)
    partition = Partition(root, shared=shared)
    if not is_refused:
        partition.prepare()
        return
    with pytest.raises(StorageError) as caught:
        partition.prepare()
    assert caught.value.code == "untrusted_parent"
    assert "chmod +t" in str(caught.value.hint)
    assert not partition.folder.exists()


def test_the_root_of_a_shared_partition_that_is_ones_own_becomes_sticky(tmp_path):
    """As in Studio, where it belongs to the number that everybody has."""
    tmp_path.chmod(0o2775)
    Partition(tmp_path, shared=True).prepare()
    assert mode(tmp_path) == 0o3775


def test_the_root_of_a_private_partition_that_all_may_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    assert refused_for(tmp_path) == "untrusted_parent"


@AS_ROOT
@pytest.mark.parametrize("shared", [False, True])
def test_a_root_of_another_user_is_refused(tmp_path, shared):
    (tmp_path / "fsx").mkdir()
    os.chown(tmp_path / "fsx", 12345, 12345)
    with pytest.raises(StorageError) as caught:
        Partition(tmp_path / "fsx", shared=shared).prepare()
    assert caught.value.code == "untrusted_parent"
    assert "12345" in caught.value.message


@pytest.mark.parametrize("shared", [False, True])
def test_a_file_in_the_folders_place_is_refused(tmp_path, shared):
    partition = Partition(tmp_path, shared=shared)
    partition.folder.write_text("")
    assert "is not a folder" in refused(partition).message


def test_a_file_in_the_partitions_place(tmp_path):
    (tmp_path / "fsx").write_text("")
    with pytest.raises(StorageError):
        Partition(tmp_path / "fsx").prepare()


def test_the_partitions_root_itself_may_be_reached_by_a_link(tmp_path):
    (tmp_path / "fsx").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "fsx")
    Partition(tmp_path / "link").prepare()
    assert (tmp_path / "fsx" / ".hyperpod" / "runs").is_dir()


def test_places(tmp_path):
    partition = Partition(tmp_path)
    bundle = partition.bundle("abc")
    assert bundle.name == "abc"
    assert bundle.parent.parent == partition.runs
    assert partition.bundle("abc.3") == bundle
    assert BundleReader(partition, "abc").records == bundle
    assert BundleReader(partition, "abc.3").records == bundle / "tasks" / "3"


@pytest.mark.parametrize("run_id", ["../x", "a/b", "", ".", "a\0", "a.b", "A"])
def test_no_place_for_what_is_no_run_id(tmp_path, run_id):
    with pytest.raises(InvalidInputError):
        Partition(tmp_path).bundle(run_id)
    with pytest.raises(InvalidInputError):
        BundleReader(Partition(tmp_path), run_id).head()
