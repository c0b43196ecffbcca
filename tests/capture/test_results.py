"""Loading results: what may run code is loaded only when nobody else could have written it."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from hyperpod_jlab.capture import results
from hyperpod_jlab.capture.results import RemoteError, load_result
from hyperpod_jlab.core.errors import DeniedError, NotFoundError, StorageError


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "partition" / ".hyperpod" / "runs" / "0a" / "run" / "tasks" / "3"
    folder.mkdir(parents=True)
    (folder / "result.pkl").write_bytes(pickle.dumps((1, 2)))
    for path in [folder, *folder.parents[:6], folder / "result.pkl"]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def test_a_private_pickle_is_loaded(records: Path):
    assert load_result(records) == (1, 2)


@pytest.mark.parametrize("above", [0, 1, 2, 5, 6])
def test_a_folder_that_others_may_write_needs_trust(records: Path, above: int):
    folder = [records, *records.parents][above]
    folder.chmod(0o775)
    with pytest.raises(DeniedError, match="is writable by other users") as caught:
        load_result(records)
    assert caught.value.code == "untrusted_result"
    assert caught.value.hint is not None
    assert "trust=True" in caught.value.hint
    assert load_result(records, trust=True) == (1, 2)


def test_above_the_partition_nothing_matters(records: Path):
    records.parents[6].chmod(0o777)
    assert load_result(records) == (1, 2)


def test_a_sticky_folder_is_fine_where_the_next_one_is_ours(records: Path):
    (records.parents[3]).chmod(0o1777)
    assert load_result(records) == (1, 2)


def test_a_file_that_others_may_write_needs_trust(records: Path):
    (records / "result.pkl").chmod(0o666)
    with pytest.raises(DeniedError):
        load_result(records)


def test_a_foreign_owner_needs_trust(records: Path):
    if os.getuid() != 0:
        pytest.fail("this test changes owners and must run as root")
    os.chown(records / "result.pkl", 12345, -1)
    with pytest.raises(DeniedError, match="uid 12345"):
        load_result(records)


def test_links_on_the_way_need_trust(records: Path, tmp_path: Path):
    target = tmp_path / "elsewhere.pkl"
    (records / "result.pkl").rename(target)
    (records / "result.pkl").symlink_to(target)
    with pytest.raises(DeniedError, match="link"):
        load_result(records)
    assert load_result(records, trust=True) == (1, 2)
    run = records.parents[1]
    run.rename(run.with_name("real"))
    run.symlink_to(run.with_name("real"))
    with pytest.raises(DeniedError):
        load_result(records)


def test_json_and_arrays_need_no_trust(records: Path):
    records.chmod(0o777)
    (records / "result.json").write_text('{"a": 1}')
    assert load_result(records) == {"a": 1}


@pytest.mark.torch
def test_an_array_file_with_objects_is_never_unpickled(records: Path):
    import numpy as np

    np.save(records / "result.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(RemoteError, match="damaged"):
        load_result(records, trust=True)


def test_an_untrusted_exception_comes_as_text(records: Path):
    (records / "result.pkl").unlink()
    (records / "exception.json").write_text(
        '{"type": "ValueError", "message": "words", "traceback": "Traceback ...\\nValueError: words\\n"}'
    )
    (records / "exception.pkl").write_bytes(pickle.dumps(ValueError("words")))
    with pytest.raises(ValueError, match="words"):
        load_result(records)
    records.chmod(0o777)
    with pytest.raises(RemoteError, match="ValueError: words") as caught:
        load_result(records)
    assert "Traceback ..." in caught.value.detail["traceback"]
    with pytest.raises(ValueError, match="words") as trusted:
        load_result(records, trust=True)
    assert "Traceback ..." in str(trusted.value.__cause__)


def test_a_pickle_that_does_not_load_here_says_so(records: Path):
    (records / "result.pkl").write_bytes(b"cnosuchmodule\nThing\n.")
    with pytest.raises(RemoteError, match="nosuchmodule") as caught:
        load_result(records)
    assert caught.value.code == "result_not_loadable"


def test_no_result_is_said(tmp_path: Path):
    with pytest.raises(NotFoundError) as caught:
        load_result(tmp_path)
    assert caught.value.code == "no_result"


@pytest.mark.parametrize("name", ["result.json", "result.npy", "exception.json"])
def test_a_pipe_or_a_link_is_no_result_and_keeps_nobody_waiting(records: Path, tmp_path: Path, name: str):
    (records / "result.pkl").unlink()
    os.mkfifo(records / name)
    with pytest.raises(StorageError, match=r"not a regular file|No such device"):
        load_result(records)
    (records / name).unlink()
    (tmp_path / "secret").write_text("[1]")
    (records / name).symlink_to(tmp_path / "secret")
    with pytest.raises(StorageError, match="symbolic links"):
        load_result(records)


@pytest.mark.parametrize("trust", [False, True])
def test_a_pipe_for_a_pickle_keeps_nobody_waiting(records: Path, trust: bool):
    (records / "result.pkl").unlink()
    os.mkfifo(records / "result.pkl")
    with pytest.raises(DeniedError):
        load_result(records, trust=trust)


def test_a_result_that_is_too_large_is_not_read(records: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(results, "_MAX_BYTES", 1000)
    (records / "result.json").write_text('"' + "x" * 2000 + '"')
    with pytest.raises(StorageError, match="larger than 1000 bytes"):
        load_result(records)


@pytest.mark.torch
def test_results_that_make_no_sense_are_damaged(records: Path):
    import numpy as np

    (records / "result.json").write_text("[" * 100_000)
    with pytest.raises(RemoteError, match="damaged"):
        load_result(records)
    (records / "result.json").unlink()
    np.save(records / "result.npy", np.zeros(1))
    text = (records / "result.npy").read_bytes()
    (records / "result.npy").write_bytes(text.replace(b"(1,)", b"(9999999999999,)")[: len(text)])
    with pytest.raises(RemoteError, match="damaged"):
        load_result(records)
    (records / "result.npy").unlink()
    (records / "result.pkl").unlink()
    (records / "exception.json").write_text("[]")
    with pytest.raises(RemoteError, match="damaged"):
        load_result(records)


def test_of_a_shared_partition_the_folders_up_to_its_root_are_looked_at(records: Path):
    ours = records.parents[4]
    ours = ours.rename(ours.with_name(f".hyperpod-{os.getuid()}"))
    moved = ours / "runs" / "0a" / "run" / "tasks" / "3"
    assert load_result(moved) == (1, 2)
    ours.parent.parent.chmod(0o777)
    assert load_result(moved) == (1, 2), "above the partition nothing matters"
    ours.parent.chmod(0o777)
    with pytest.raises(DeniedError):
        load_result(moved)
    ours.parent.chmod(0o1777)
    assert load_result(moved) == (1, 2)
