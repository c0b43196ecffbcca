"""What all tests share: folders of their own, so that none touches the user's."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

from tests import marks
from tests.golden.frozen import Golden, places_of

BUILD_TIMEOUT = 3600
"""Seconds for the first test on Kubernetes, in which all of it may have to be built."""

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


@pytest.fixture(scope="session")
def eks_bed() -> Iterator[Path]:
    """A Kubernetes that can be a HyperPod cluster's on EKS, for all tests of that; its partition is the folder ``fsx`` beside it.

    It has a claim in the namespace ``default``.
    """
    from testbed.aws.attached import order
    from testbed.aws.kubernetes_bed import SCRIPT, kubernetes_bed
    from tests.kubernetes.cluster import ONE, build

    build("training-operator")
    with tempfile.TemporaryDirectory(prefix="hpj-bed-") as folder:
        base = Path(folder)
        base.chmod(0o755)
        (base / "fsx").mkdir()
        options = ("--gpus", "8", "--training-operator", "--partition", str(base / "fsx"))
        with ONE.only(kubernetes_bed(base / "k", *options)) as made:
            order(SCRIPT, made, "claim", "default")
            yield made


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--freeze``: see `tests.golden.frozen`; ``--slurm``: the version of the tests' Slurm."""
    parser.addoption("--freeze", action="store_true", help="rewrite the golden files")
    parser.addoption("--slurm", default="22.05", help="version of Slurm: 22.05 or 24.11")


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """Compares documents with golden files."""
    return Golden(bool(request.config.getoption("--freeze")), places_of(tmp_path))


def pytest_configure(config: pytest.Config) -> None:
    """``pytest -n 2`` alone keeps groups together too."""
    if config.getoption("dist", "no") in {"load", "loadfile", "loadscope"}:
        config.option.dist = "loadgroup"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Marks come before ``-m`` selects by them; the order comes last."""
    marks.add_marks(items)
    yield
    marks.order(items)
    if hasattr(config, "workerinput"):
        marks.refuse_lost_groups(items)
    for fixture in ("kubernetes_cluster", "kueue_cluster", "eks_bed"):
        # The first test on such a cluster may have to build it.
        first = next((item for item in items if fixture in marks.fixtures_of(item)), None)
        if first and first.get_closest_marker("kubernetes"):
            first.add_marker(pytest.mark.timeout(BUILD_TIMEOUT), append=False)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was imported and collected stays to the end: the garbage collector need not walk through it again and again."""
    gc.collect()
    gc.freeze()


class GroupsAndFiles(LoadGroupScheduling):
    """The tests of a group go to one worker, and so do those of a file."""

    def _split_scope(self, nodeid: str) -> str:
        return str(super()._split_scope(nodeid)).partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupsAndFiles | None:
    """With ``--dist loadgroup``, our own."""
    return GroupsAndFiles(config, log) if config.getvalue("dist") == "loadgroup" else None
