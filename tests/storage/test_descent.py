"""Files of bundles by descriptor: what is opened, what is refused, and that deletion leads nowhere else."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.removal import remove_tree
from tests.storage.users import AS_ROOT, OTHER


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A folder in ours."""
    made = tmp_path / "fsx" / ".hyperpod" / "runs" / "00" / "run"
    (made / "status").mkdir(parents=True)
    (made / "file").write_bytes(b"words")
    (tmp_path / "secret").write_bytes(b"secret")
    return made


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to(path.parents[5] / "secret")


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("lay", [pipe, link, folder])
def test_only_regular_files_are_read_and_nothing_is_waited_for(bundle: Path, lay: Callable[[Path], None]):
    lay(bundle / "laid")
    with pytest.raises(OSError, match=r"regular|links|directory"):
        descent.read(bundle / "laid")
    assert not descent.is_file(bundle / "laid")


@pytest.mark.parametrize("step", ["run", "00", "runs", ".hyperpod"])
def test_no_step_from_our_folder_on_may_be_a_link(bundle: Path, tmp_path: Path, step: str):
    assert descent.read(bundle / "file") == b"words"
    place = next(one for one in (bundle, *bundle.parents) if one.name == step)
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    for use in (descent.read, descent.state, lambda path: descent.replace(path, b"x")):
        with pytest.raises(NotADirectoryError):
            use(bundle / "file")
    with pytest.raises(NotADirectoryError):
        descent.list_names(bundle)
    assert next((tmp_path / "moved").rglob("file")).read_bytes() == b"words"


def test_the_way_to_our_folder_is_the_administrators_and_may_be_a_link(bundle: Path, tmp_path: Path):
    (tmp_path / "mount").symlink_to(tmp_path / "fsx")
    there = tmp_path / "mount" / bundle.relative_to(tmp_path / "fsx")
    assert descent.read(there / "file") == b"words"


def test_dots_lead_nowhere(bundle: Path):
    with pytest.raises(OSError, match="points outside"):
        descent.read(bundle / ".." / ".." / "x")


def test_a_file_that_is_too_large_is_not_read(bundle: Path):
    with pytest.raises(OSError, match="larger") as caught:
        descent.read(bundle / "file", 4)
    assert caught.value.errno == errno.EFBIG
    assert descent.read(bundle / "file", 5) == b"words"


def test_what_is_written_replaces_a_link_and_not_what_it_leads_to(bundle: Path, tmp_path: Path):
    (bundle / "record").symlink_to(tmp_path / "secret")
    descent.replace(bundle / "record", b"new")
    assert (bundle / "record").read_bytes() == b"new"
    assert (tmp_path / "secret").read_bytes() == b"secret"
    (bundle / "made").symlink_to(tmp_path / "secret")
    assert not descent.create(bundle / "made", b"new")
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert not [name for name in descent.list_names(bundle) if name.endswith(".tmp")]


@AS_ROOT
def test_a_folder_with_the_number_of_another_user_is_not_entered(tmp_path: Path):
    taken = tmp_path / f".hyperpod-{os.getuid()}"
    (taken / "runs").mkdir(parents=True)
    (taken / "file").write_bytes(b"")
    assert descent.read(taken / "file") == b""
    os.chown(taken, OTHER, OTHER)
    with pytest.raises(descent.ForeignFolderError):
        descent.read(taken / "file")


def test_links_in_a_folder_are_removed_and_not_followed(bundle: Path, tmp_path: Path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_bytes(b"")
    (bundle / "status" / "link").symlink_to(tmp_path / "kept")
    remove_tree(bundle)
    assert not bundle.exists()
    assert (tmp_path / "kept" / "file").exists()


def test_very_deep_folders_are_removed(bundle: Path):
    at = os.open(bundle, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    remove_tree(bundle)
    assert not bundle.exists()


@AS_ROOT
def test_a_folder_of_another_user_is_not_removed(bundle: Path):
    os.chown(bundle, OTHER, OTHER)
    with pytest.raises(PermissionError):
        remove_tree(bundle)
    assert (bundle / "file").exists()


@AS_ROOT
def test_a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere(tmp_path: Path):
    """As with the review's finding 3: the other user swaps a closed folder for a link as long as it is deleted."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:-1]:
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    home = tmp_path / "home"
    stop = threading.Event()

    def swap(folder: Path) -> None:
        while not stop.is_set():
            try:
                (folder / "swapped").rename(folder / "aside")
                (folder / "swapped").symlink_to(home)
                (folder / "swapped").unlink()
                (folder / "aside").rename(folder / "swapped")
            except OSError:
                continue

    for turn in range(5):
        (home / "documents").mkdir(parents=True, exist_ok=True)
        (home / "documents" / "thesis").write_text("years")
        folder = tmp_path / ".hyperpod" / str(turn)
        (folder / "swapped" / "inner").mkdir(parents=True)
        for number in range(300):
            (folder / f"file-{number}").write_bytes(b"")
        stop.clear()
        thread = threading.Thread(target=swap, args=(folder,))
        thread.start()
        try:
            remove_tree(folder)
        except OSError:
            pass  # it may be filled again and again; what counts is where it leads
        finally:
            stop.set()
            thread.join()
        assert (home / "documents" / "thesis").read_text() == "years"
