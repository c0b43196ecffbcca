"""A file system that does not answer holds nobody up."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.storage.timeouts import run_with_timeout


def test_an_answer_and_an_error_come_through():
    assert asyncio.run(run_with_timeout(Path("/"), lambda: 7)) == 7
    with pytest.raises(FileNotFoundError):
        asyncio.run(run_with_timeout(Path("/"), Path("/nothing-there").stat))


def test_a_call_that_hangs_is_left_alone(tmp_path):
    # A pipe that nobody writes to: its reader hangs in the kernel, as on a file system whose servers are gone.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StorageError) as caught:
        asyncio.run(run_with_timeout(tmp_path, pipe.read_text, seconds=0.2))
    assert caught.value.code == "storage_no_answer"
    (hanging,) = [one for one in threading.enumerate() if one.name == f"read {tmp_path}"]
    assert hanging.daemon
    pipe.write_text("x")  # its answer comes after the loop has gone, and disturbs nobody
    hanging.join(5)
    assert not hanging.is_alive()
