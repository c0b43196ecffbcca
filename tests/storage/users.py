"""Doing something as another user, which takes root."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.storage.partition import RunFolder
from tests.storage.bundles import SPEC, head, write_files

OTHER = 65534
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user too")

_FORK = multiprocessing.get_context("fork")


def as_other(work: Callable[[], Any], umask: int = 0o022, uid: int = OTHER) -> Any:
    """What `work` returns, or the text of what it raises, in a process of another user."""

    def run(answers: Any) -> None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        os.umask(umask)
        try:
            answers.put(work())
        except Exception as error:
            answers.put(repr(error))

    answers = _FORK.Queue()
    process = _FORK.Process(target=run, args=(answers,))
    process.start()
    found = answers.get(timeout=60)
    process.join(60)
    return found


@contextmanager
def common_folder() -> Iterator[Path]:
    """A folder that all users of the machine may reach (pytest's own they may not)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def others_bundle(root: Path, run_id: str, files: dict[str, Any], mode: int = 0o777) -> Path:
    """A run of the other user's on a shared partition, in which anybody may write."""
    root.mkdir(exist_ok=True)
    root.chmod(0o1777)
    folder = RunFolder(root / f".hyperpod-{OTHER}", OTHER).bundle(run_id)
    write_files(folder, {"bundle.json": head(run_id, 1.7e9), "spec.json": SPEC, **files}.items())
    give_away(root / f".hyperpod-{OTHER}", mode)
    return folder


def give_away(top: Path, mode: int = 0o777) -> None:
    """Make all in a folder the other user's; what is in a bundle gets the mode."""
    for path in (top, *top.rglob("*")):
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
        if path.is_dir() and not path.is_symlink():
            path.chmod(mode if len(path.relative_to(top).parts) > 2 else 0o755)
