"""Two users of one machine on a partition that is shared, and on one that is not."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.cli.main import main
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.run.listing import RunFilter
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage.bundle import BundleWriter
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.storage.bundles import make_bundle
from tests.storage.users import AS_ROOT, OTHER, as_other, common_folder

pytestmark = [pytest.mark.local, AS_ROOT]


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
        found = told(hyperpod(folder, shared, who).runs.list(RunFilter(**wanted)))
        return found if isinstance(found, tuple) else sorted((run.run_id, run.user, run.state) for run in found.runs)

    return look


def called(folder: Path, *words: str) -> tuple[int, str]:
    """``hpj`` in this process: its exit code, and what it wrote to stderr."""
    os.chdir(folder)
    words_on_error = io.StringIO()
    with contextlib.redirect_stderr(words_on_error), contextlib.redirect_stdout(io.StringIO()):
        code = main(words)
    return code, words_on_error.getvalue()


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
        partition.root.chmod(0o1777)
        partition.prepare()
        write(folder, "mine")
        assert as_other(lambda: write(folder, "theirs"), umask) == "theirs"
    finally:
        os.umask(before)
    mine, theirs = (BundleReader(partition, run_id) for run_id in ("mine", "theirs"))
    assert (mine.owner, theirs.owner) == (os.getuid(), OTHER)
    assert (mine.is_own, theirs.is_own) == (True, False)
    code = mine.folder / "code/main.py"
    assert as_other(code.read_bytes) == (theirs.folder / "code/main.py").read_bytes() == b"print(1)"
    assert "PermissionError" in as_other((mine.folder / "secrets/TOKEN").read_bytes)
    assert "PermissionError" in as_other(code.unlink)
    for folder_of_mine in (mine.folder, mine.folder.parent, partition.runs, partition.folder):
        moved = partition.root / "moved"
        assert "PermissionError" in as_other(lambda: folder_of_mine.rename(moved))  # noqa: B023


def test_all_runs_are_listed_with_whose_they_are_and_only_their_own_may_act(folder):
    partition = Partition(folder / "fsx", shared=True)
    bundle = make_bundle(partition, "mine", code=None, user="root")
    broken = make_bundle(partition, "broken")
    (broken.folder / "bundle.json").write_text("{")
    for path in [partition.root, *partition.root.rglob("*")]:
        path.chmod((path.stat().st_mode & 0o7000) | (0o755 if path.is_dir() else 0o644))
    assert as_other(listed(folder, "other", everyone=True)) == [
        ("broken", "root", "unknown"),
        ("mine", "root", "waiting"),
    ]
    assert as_other(listed(folder, "other")) == []
    for action in ("cancel", "hold"):
        answer = as_other(lambda: told(hyperpod(folder, True, "other").runs.act("mine", action)))  # noqa: B023
        assert answer == ("foreign_run", 4)
    assert bundle.actions() == ()
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")


def test_somebody_elses_private_partition(folder):
    make_bundle(Partition(folder / "fsx"), "mine")
    assert as_other(listed(folder, "other", shared=False)) == ("storage_denied", 4)
    answer = as_other(lambda: told(hyperpod(folder, False, "other").runs.get("mine")))
    assert answer == ("storage_denied", 4)


@pytest.mark.parametrize(
    ("where", "mode"),
    [("", 0o700), ("", 0o000), (".hyperpod", 0o700), (".hyperpod/runs", 0o700), (".hyperpod/runs", 0o744)],
)
def test_every_command_tells_in_words_that_somebody_elses_partition_is_closed(folder, where, mode):
    partition = Partition(folder / "fsx")
    bundle = make_bundle(partition, "mine")
    for path in [partition.root, *partition.root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    (partition.root / where).chmod(mode)
    config = folder / "config.toml"
    python = "/usr/bin/python3"  # the tests' own may lie where only root may look
    config.write_text(f"[storage]\npath = '{partition.root}'\n[clusters.local]\npython = '{python}'\n")
    os.environ["HYPERPOD_CONFIG"] = str(config)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache" / "other")
    commands = ["runs", "show mine", "show last", "logs mine", "cancel mine", "clone mine"]
    commands += ["clean --older 1d", "submit -c true", "submit -c true --after mine"]
    try:
        for command in commands:
            code, err = as_other(lambda: called(folder, *command.split(), "--json"))  # noqa: B023
            error = json.loads(err.splitlines()[-1])
            assert (command, code, error["code"]) == (command, 4, "storage_denied")
            assert str(partition.root) in error["message"]
            assert "[storage]" in error["hint"]
        code, err = as_other(lambda: called(folder, "doctor"))
        assert code == 2
        assert err.startswith("error: failed checks: storage\n")
        assert "[storage]" in err
    finally:
        del os.environ["HYPERPOD_CONFIG"]
    assert bundle.read().damage == ()


def test_a_submit_into_somebody_elses_open_folder_is_denied(folder):
    partition = Partition(folder / "fsx")
    partition.prepare()
    for path in (partition.root, partition.folder, partition.runs):
        path.chmod(0o755)

    def prepare() -> Any:
        try:
            partition.prepare()
        except HyperpodError as error:
            return error.code, error.exit_code, error.hint

    code, exit_code, hint = as_other(prepare)
    assert (code, exit_code) == ("untrusted_folder", 4)
    assert "remove" not in hint


def test_one_private_run_on_a_shared_partition_is_told_as_unreadable(folder):
    partition = Partition(folder / "fsx", shared=True)
    make_bundle(partition, "open", user="root")
    private = make_bundle(partition, "private", user="root")
    for path in [partition.root, *partition.root.rglob("*")]:
        path.chmod((path.stat().st_mode & 0o7000) | (0o755 if path.is_dir() else 0o644))
    private.folder.chmod(0o700)
    told_of = as_other(listed(folder, "other", everyone=True))
    assert told_of == [("open", "root", "succeeded"), ("private", "root", "unknown")]
    answer = as_other(lambda: told(hyperpod(folder, True, "other").runs.get("private")))
    assert answer == ("storage_denied", 4)
