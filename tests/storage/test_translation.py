"""Paths of the partition as this machine and as the nodes see it."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.storage.partition import PathMap

STUDIO = PathMap.create_map("/mnt/fsx", "/fsx/ada")


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("/mnt/fsx/a/b.py", "/fsx/ada/a/b.py"),
        ("/mnt/fsx", "/fsx/ada"),
        ("/mnt/fsx/", "/fsx/ada"),
        ("/mnt/fsx//a/./b", "/fsx/ada/a/b"),
    ],
)
def test_there_and_back(here, there):
    assert str(STUDIO.to_cluster_path(here)) == there
    assert STUDIO.to_local_path(there) == PurePosixPath(here)


@pytest.mark.parametrize("path", ["/mnt/fsx2/a", "/mnt", "a", "/mnt/fsx/../../etc/passwd", "/", ""])
def test_what_lies_elsewhere_is_refused(path):
    with pytest.raises(InvalidInputError) as caught:
        STUDIO.to_cluster_path(path)
    assert caught.value.code == "outside_partition"


def test_the_same_path_on_both_sides():
    same = PathMap.create_map("/fsx")
    assert str(same.to_cluster_path("/fsx/a")) == "/fsx/a"


@pytest.mark.parametrize(
    ("python", "there"),
    [
        ("/mnt/fsx/venv/bin/python", "/fsx/ada/venv/bin/python"),
        ("/usr/bin/python3", "/usr/bin/python3"),
        ("python3", "python3"),
        ("/mnt/fsx2/python", "/mnt/fsx2/python"),
    ],
)
def test_a_python_is_translated_when_it_lies_on_the_partition(python, there):
    assert STUDIO.to_cluster_python(python) == there
