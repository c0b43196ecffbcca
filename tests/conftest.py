"""What all tests share: folders of their own, so that none touches the user's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.golden.frozen import Golden, places_of

# pytest-xdist hands its terminal's width on to the workers; a terminal of a test's own says its own.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own data, state, cache and configuration folders, and no configuration from elsewhere."""
    for name in ("DATA", "STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.delenv("HYPERPOD_CONFIG", raising=False)
    return tmp_path


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--freeze``: see `tests.golden.frozen`."""
    parser.addoption("--freeze", action="store_true", help="rewrite the golden files")


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """Compares documents with golden files."""
    return Golden(bool(request.config.getoption("--freeze")), places_of(tmp_path))


FIRST = (
    "kubernetes",
    "slurm",
    "lifecycle",
    "security",
    "aws",
    "admin",
    "examples",
    "local",
    "launcher",
    "cli",
    "server",
)
"""Folders of tests that take long: the last files of a run are to be short ones, so that all workers end at about the same time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long."""
    ranks = {f"tests/{folder}": rank for rank, folder in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get("/".join(item.nodeid.split("/")[:2]), len(FIRST)))


class OneClusterAtATime(LoadFileScheduling):
    """The tests of a file go to one worker, and all on Kubernetes do: its cluster takes 1.5 GB and half a core."""

    def _split_scope(self, nodeid: str) -> str:
        scope = str(super()._split_scope(nodeid))
        return "tests/kubernetes" if scope.startswith("tests/kubernetes/") else scope


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneClusterAtATime | None:
    """With ``--dist loadfile``, our own."""
    return OneClusterAtATime(config, log) if config.getvalue("dist") == "loadfile" else None
