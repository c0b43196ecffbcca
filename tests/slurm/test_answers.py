"""Answers of jobs as files of a folder that users may be able to change: read, and never a way to anything else."""

from __future__ import annotations

import os

import pytest

from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.engines.slurm.remote_task import read_result_file


def test_an_answer_is_read_once_it_is_there(tmp_path):
    file = tmp_path / "answer"
    assert read_result_file(file) is None
    file.write_bytes(b"whole \xff")
    assert read_result_file(file) == "whole \ufffd"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "folder behind a link"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    file, secret = tmp_path / "answer", tmp_path / "secret"
    secret.write_text("the admin's own")
    if kind == "pipe":
        os.mkfifo(file)  # who opened it would wait for a writer
    elif kind == "link":
        file.symlink_to(secret)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(tmp_path)
    with pytest.raises(UnreachableError, match="cannot be read") as caught:
        read_result_file(file)
    assert caught.value.code == "no_answer"
