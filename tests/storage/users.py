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

OTHER = 65534
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user too")

_FORK = multiprocessing.get_context("fork")


def as_other(work: Callable[[], Any], umask: int = 0o022) -> Any:
    """What `work` returns, or the text of what it raises, in a process of another user."""

    def run(answers: Any) -> None:
        os.setgroups([])
        os.setgid(OTHER)
        os.setuid(OTHER)
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
