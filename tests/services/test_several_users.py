"""Two users of one machine on a partition that is shared, and on one that is not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.model.config import Settings
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.runs import Wanted
from hyperpod_jlab.services.user import user_of
from hyperpod_jlab.storage.bundle import BundleWriter
from hyperpod_jlab.storage.partition import Partition
from tests.storage.bundles import make_bundle
from tests.storage.users import AS_ROOT, OTHER, as_other, common_folder

pytestmark = AS_ROOT


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with common_folder() as made:
        for name in ("STATE", "CACHE", "CONFIG"):
            monkeypatch.setenv(f"XDG_{name}_HOME", str(made / name.lower()))
            (made / name.lower()).mkdir()
            (made / name.lower()).chmod(0o777)
        yield made


def hyperpod(folder: Path, shared: bool, who: str) -> Hyperpod:
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache" / who)
    storage = {"path": str(folder / "fsx"), "shared": shared}
    return Hyperpod(Settings.model_validate({"storage": storage}))


def told(work: Any) -> Any:
    """What comes of it, or the error's code and exit code."""
    try:
        return asyncio.run(work)
    except HyperpodError as error:
        return error.code, error.exit_code


def listed(folder: Path, who: str, shared: bool = True, **wanted: Any) -> Any:
    def look() -> Any:
        found = told(hyperpod(folder, shared, who).runs.list(Wanted(**wanted)))
        return (
            found
            if isinstance(found, tuple)
            else sorted((run.run_id, run.user, run.state) for run in found.runs)
        )

    return look


def write(folder: Path, run_id: str) -> str:
    with BundleWriter(Partition(folder / "fsx", shared=True), run_id) as writer:
        writer.add_bytes("code/main.py", b"print(1)")
        writer.write("spec.json", b"{}")
        writer.write_secrets({"TOKEN": "s"})
        writer.commit()
    return run_id


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_each_reads_the_others_runs_on_a_shared_partition(folder, umask):
    partition = Partition(folder / "fsx", shared=True)
    before = os.umask(umask)
    try:
        partition.root.mkdir(mode=0o777)
        partition.root.chmod(0o777)
        partition.prepare()
        write(folder, "mine")
        assert as_other(lambda: write(folder, "theirs"), umask) == "theirs"
    finally:
        os.umask(before)
    code = [partition.bundle(run_id) / "code/main.py" for run_id in ("mine", "theirs")]
    assert [path.stat().st_uid for path in code] == [os.getuid(), OTHER]
    assert as_other(code[0].read_bytes) == b"print(1)"
    assert "PermissionError" in as_other((partition.bundle("mine") / "secrets/TOKEN").read_bytes)
    assert "PermissionError" in as_other(code[0].unlink)
    assert "PermissionError" in as_other(
        lambda: partition.bundle("mine").rename(partition.runs / "x")
    )


def test_all_runs_are_listed_with_whose_they_are_and_only_their_own_may_act(folder):
    partition = Partition(folder / "fsx", shared=True)
    bundle = make_bundle(partition, "mine", code=None, user="root")
    broken = make_bundle(partition, "broken")
    (broken.folder / "bundle.json").write_text("{")
    for path in [partition.root, *partition.root.rglob("*")]:
        path.chmod((path.stat().st_mode & 0o7000) | (0o755 if path.is_dir() else 0o644))
    assert as_other(listed(folder, "other")) == [
        ("broken", "root", "unknown"),
        ("mine", "root", "waiting"),
    ]
    assert as_other(listed(folder, "other", user=user_of(OTHER))) == []
    for action in ("cancel", "hold"):
        answer = as_other(lambda: told(hyperpod(folder, True, "other").runs.act("mine", action)))  # noqa: B023
        assert answer == ("denied", 4)
    assert bundle.actions() == ()
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")


def test_somebody_elses_private_partition(folder):
    make_bundle(Partition(folder / "fsx"), "mine")
    assert as_other(listed(folder, "other", shared=False)) == ("storage_denied", 2)
    answer = as_other(lambda: told(hyperpod(folder, False, "other").runs.get("mine")))
    assert answer == ("storage_denied", 2)


def test_one_private_run_on_a_shared_partition_is_told_as_unreadable(folder):
    partition = Partition(folder / "fsx", shared=True)
    make_bundle(partition, "open", user="root")
    private = make_bundle(partition, "private", user="root")
    for path in [partition.root, *partition.root.rglob("*")]:
        path.chmod((path.stat().st_mode & 0o7000) | (0o755 if path.is_dir() else 0o644))
    private.folder.chmod(0o700)
    told_of = as_other(listed(folder, "other"))
    assert told_of == [("open", "root", "succeeded"), ("private", "root", "unknown")]
