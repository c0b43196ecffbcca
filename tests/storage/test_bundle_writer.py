"""Making a bundle: whole and in place, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import InternalError, InvalidInputError, NotFoundError, StorageError
from hyperpod_jlab.storage.bundle import STAGING, BundleWriter, hide, withdraw
from hyperpod_jlab.storage.partition import Partition
from tests.storage.racing import race


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "fsx")


def names(partition: Partition) -> list[str]:
    """Everything in the shards, staging folders too."""
    return [path.name for path in partition.runs.glob("*/*")]


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in [folder, *folder.rglob("*")]}


def test_nothing_is_seen_before_the_commit(partition):
    with BundleWriter(partition, "run-1") as writer:
        writer.write("bundle.json", b"{}")
        assert not partition.bundle("run-1").exists()
        assert all(name.startswith(STAGING) for name in names(partition))
        assert writer.commit()
        assert names(partition) == ["run-1"]
    assert names(partition) == ["run-1"]
    assert (partition.bundle("run-1") / "bundle.json").read_bytes() == b"{}"


def test_what_is_not_committed_is_removed(partition):
    with BundleWriter(partition, "run-1") as writer:
        writer.add_bytes("code/main.py", b"1")
        writer.write_secrets({"TOKEN": "s"})
    assert names(partition) == []


def test_what_breaks_is_removed(partition):
    def submit() -> None:
        with BundleWriter(partition, "run-1") as writer:
            writer.add_bytes("code/main.py", b"1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submit()
    assert names(partition) == []


def test_of_racing_commits_one_wins_and_its_bundle_stays_whole(partition):
    def submit(number: int) -> bool:
        with BundleWriter(partition, "run-1") as writer:
            for file in range(5):
                writer.write(f"code/{file}", str(number).encode())
            return writer.commit()

    won = race(submit)
    assert won.count(True) == 1
    code = partition.bundle("run-1") / "code"
    assert {path.read_text() for path in code.iterdir()} == {str(won.index(True))}
    assert names(partition) == ["run-1"]


def test_a_second_commit_of_an_id_changes_nothing(partition):
    for text in (b"first", b"second"):
        with BundleWriter(partition, "run-1") as writer:
            writer.write("spec.json", text)
            assert writer.commit() == (text == b"first")
    assert (partition.bundle("run-1") / "spec.json").read_bytes() == b"first"


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_an_id_whose_place_is_taken_by_something_else(partition, tmp_path, kind):
    partition.prepare()
    final = partition.bundle("run-1")
    final.parent.mkdir()
    if kind == "file":
        final.write_text("precious")
    else:
        final.symlink_to(tmp_path if kind == "link" else tmp_path / "nowhere")
    with BundleWriter(partition, "run-1") as writer, pytest.raises(StorageError):
        writer.commit()
    assert names(partition) == ["run-1"]


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/x", "a/../../x", "", ".", "..", "code/..", "code/../../../x", "//x", "a/..//../x"],
)  # fmt: skip
def test_a_path_that_leads_out_is_refused(partition, path):
    with BundleWriter(partition, "run-1") as writer:
        for add in (writer.write, writer.add_bytes):
            with pytest.raises(InternalError):
                add(path, b"")
        with pytest.raises(InternalError):
            writer.add_file(path, Path(__file__))
    assert not list(partition.root.parent.glob("x"))


@pytest.mark.parametrize("name", ["../TOKEN", "../../TOKEN", ".."])
def test_a_secret_stays_in_its_folder(partition, name):
    with BundleWriter(partition, "run-1") as writer, pytest.raises((InternalError, StorageError)):
        writer.write_secrets({name: "s"})


@pytest.mark.parametrize(
    ("path", "error"),
    [("a\0b", InvalidInputError), ("\ud800", InvalidInputError), ("a/\udcff", InvalidInputError), ("x" * 256, StorageError)],
)  # fmt: skip
def test_a_name_that_no_record_or_file_can_hold(partition, path, error):
    with BundleWriter(partition, "run-1") as writer:
        for add in (writer.write, writer.add_bytes):
            with pytest.raises(error):
                add(path, b"")
    assert names(partition) == []


def test_odd_names_are_fine(partition):
    odd = ["a b", "ü", "-x", "$HOME", "a\nb", "`x`", "a;b", "~", "...", "c/.d/..e"]
    with BundleWriter(partition, "run-1") as writer:
        for name in odd:
            writer.add_bytes(f"work/{name}", name.encode())
        writer.commit()
    work = partition.bundle("run-1") / "work"
    assert {name: (work / name).read_text() for name in odd} == {name: name for name in odd}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("shared", [False, True])
def test_modes_are_exactly_the_documented_ones(tmp_path, umask, shared):
    partition = Partition(tmp_path / "fsx", shared=shared)
    folder, file, code, tool = (0o755, 0o644, 0o444, 0o555) if shared else (0o700, 0o600, 0o400, 0o500)
    before = os.umask(umask)
    try:
        with BundleWriter(partition, "run-1") as writer:
            writer.write("spec.json", b"")
            writer.add_bytes("code/deep/main.py", b"1")
            writer.add_bytes("work/tool", b"2", executable=True)
            writer.write_secrets({"TOKEN": "s"})
            writer.commit()
    finally:
        os.umask(before)
    found = modes(partition.bundle("run-1"))
    wanted = {
        ".": folder, "code": folder, "code/deep": folder, "work": folder, "logs": folder, "status": folder,
        "status/observations": folder, "status/actions": folder, "spec.json": file, "files.json": file,
        "code/deep/main.py": code, "work/tool": tool, "secrets": 0o700, "secrets/TOKEN": 0o600,
    }  # fmt: skip
    assert found == wanted


def test_the_second_bundle_of_the_same_code_copies_nothing(partition, tmp_path):
    source = tmp_path / "data.bin"
    source.write_bytes(os.urandom(1 << 20))

    def submit(run_id: str) -> int:
        with BundleWriter(partition, run_id) as writer:
            writer.add_file("work/data.bin", source)
            writer.add_bytes("code/main.py", b"print(1)")
            copied = writer.counts.copied
            writer.commit()
        return copied

    assert submit("run-1") == (1 << 20) + 8
    assert submit("run-2") == 0
    first, second = (partition.bundle(name) / "work/data.bin" for name in ("run-1", "run-2"))
    assert first.stat().st_ino == second.stat().st_ino
    assert source.stat().st_ino != first.stat().st_ino


@pytest.mark.parametrize("kind", ["missing", "folder", "loop"])
def test_a_source_that_cannot_be_read_is_the_users_matter(partition, tmp_path, kind):
    source = tmp_path / "source"
    if kind == "folder":
        source.mkdir()
    elif kind == "loop":
        source.symlink_to(source)
    with BundleWriter(partition, "run-1") as writer, pytest.raises(InvalidInputError) as caught:
        writer.add_file("work/source", source)
    assert str(source) in caught.value.message
    assert names(partition) == []


def test_withdrawing_takes_the_bundle_out_of_sight_and_away(partition):
    with BundleWriter(partition, "run-1") as writer:
        writer.add_bytes("code/main.py", b"1")
        writer.commit()
    withdraw(partition.bundle("run-1"))
    assert names(partition) == []
    with pytest.raises(NotFoundError):
        withdraw(partition.bundle("run-1"))


def test_a_hidden_bundle_is_not_a_run_any_more(partition):
    with BundleWriter(partition, "run-1") as writer:
        writer.commit()
    hidden = hide(partition.bundle("run-1"))
    assert hidden.is_dir()
    assert names(partition) == [hidden.name]
    assert hidden.name.startswith(STAGING)
