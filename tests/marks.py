"""Marks that every test gets by the fixtures it takes: what it needs, who runs it, and whether it may run again."""

from __future__ import annotations

import re
from collections import Counter

import pytest

FIXTURES = {
    "kubernetes": {"kubernetes_cluster", "start_kubernetes", "eks_bed"},
    "slurm": {"slurm_version"},
    "server": {"jp_serverapp", "module_server"},
    "aws": {"endpoint"},
    "prometheus": {"prometheus"},
}
"""What a test needs that takes one of these fixtures, in any folder."""

FIXTURES_OF_FOLDERS = {
    "lifecycle": {"space": {"space", "started", "package", "conda", "base"}},
    "magics": {"kernel": {"kernel"}, "local": {"project"}},
    "examples": {"local": {"environment", "hpj"}},
    "launcher": {"local": {"bundle"}},
    "local": {"local": {"local"}},
    "services": {"local": {"place"}},
    "api": {"local": {"own_cluster"}},
    "security": {"local": {"stage"}},
    "admin": {"local": {"package"}},
}
"""The same for names that mean something else in other folders."""

NEEDS = (*("slurm", "kubernetes", "server", "local", "space", "kernel", "prometheus", "aws"), "torch")
"""All that a test may need; one that needs none of it is a unit test."""

OWN_CLUSTER = {"kueue_cluster", "slurm_start", "with_sudo"}
"""Fixtures that start a cluster beside the shared one; such tests come last in their group."""

FIRST = ("lifecycle", "security", "aws", "admin", "examples", "local", "launcher", "cli", "server")
"""Folders that take long come first: the last files of a run are short ones, so that all workers end at about the same time."""

GROUPS = ("kubernetes", "slurm-1", "slurm-2")
"""Groups of more than a file, the longest first. A group runs in one worker, on one cluster."""

NEVER_AGAIN = re.compile(r"exactly_once|fence|kill|random|fault|inject|rendezvous|moment|broken_submit")
"""Tests of what must hold at every moment: a second try would hide the one time that it does not."""


def folder_of(item: pytest.Item) -> str:
    """The folder below ``tests``."""
    parts = item.nodeid.split("/")
    return parts[1] if len(parts) > 2 else ""


def file_of(item: pytest.Item) -> str:
    """The file, as in the node id."""
    return item.nodeid.partition("::")[0]


def fixtures_of(item: pytest.Item) -> set[str]:
    """The names of all fixtures that a test takes, and of its parameters."""
    return set(getattr(item, "fixturenames", ()))


def needs(item: pytest.Item) -> set[str]:
    """What a test needs, by its fixtures and by its own marks."""
    taken = fixtures_of(item)
    known = [*FIXTURES.items(), *FIXTURES_OF_FOLDERS.get(folder_of(item), {}).items()]
    found = {name for name, fixtures in known if fixtures & taken}
    return found | {name for name in NEEDS if item.get_closest_marker(name)}


def add_marks(items: list[pytest.Item]) -> None:
    """Mark each test with what it needs, its group, and whether it may run a second time."""
    of_slurm = Counter[str]()
    for item in items:
        found = needs(item)
        for name in found or {"unit"}:
            item.add_marker(name)
        if "kubernetes" in found:
            item.add_marker(pytest.mark.xdist_group("kubernetes"))
        elif "slurm" in found:
            of_slurm[file_of(item)] += 1
        if over_ssh(item) and not item.get_closest_marker("both_transports"):
            item.add_marker("full")
        if found & {"kubernetes", "slurm"} and not NEVER_AGAIN.search(item.nodeid):
            item.add_marker(pytest.mark.flaky(reruns=1))
    halves = halve(of_slurm)
    for item in items:
        if "slurm" in needs(item) and "kubernetes" not in needs(item):
            item.add_marker(pytest.mark.xdist_group(halves[file_of(item)]))


def over_ssh(item: pytest.Item) -> bool:
    """Whether a test on Slurm runs over ssh, and here as well."""
    call = getattr(item, "callspec", None)
    chosen = [mark.args for mark in item.iter_markers("parametrize")]
    only = any(names == "transport" and values == ["ssh"] for names, values, *_ in chosen)
    return call is not None and call.params.get("transport") == "ssh" and not only


def halve(files: Counter[str]) -> dict[str, str]:
    """Two groups of files with about as many tests."""
    sizes = {"slurm-1": 0, "slurm-2": 0}
    found = {}
    for file, number in sorted(files.items(), key=lambda one: (-one[1], one[0])):
        found[file] = min(sizes, key=lambda name: sizes[name])
        sizes[found[file]] += number
    return found


def group_of(item: pytest.Item) -> str:
    """The group that a test runs in; by default its file."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark else file_of(item)


def order(items: list[pytest.Item]) -> None:
    """Begin with what takes long; in a group, tests of the shared cluster come before those that start one of their own."""
    folders = {name: rank for rank, name in enumerate(FIRST, len(GROUPS))}

    def place(item: pytest.Item) -> tuple[int, int]:
        group = group_of(item)
        if group in GROUPS:
            return GROUPS.index(group), cluster_of(item)
        return folders.get(folder_of(item), len(folders) + len(GROUPS)), 0

    items.sort(key=place)


def cluster_of(item: pytest.Item) -> int:
    """Which cluster of its group a test runs on: 0 for the shared one, 1 for the one that is EKS', 2 for one of its own."""
    taken = fixtures_of(item)
    if "eks_bed" in taken:
        return 1
    shared = {"kubernetes_cluster", "slurm_cluster"} & taken
    return 2 if not shared or OWN_CLUSTER & taken else 0


def refuse_lost_groups(items: list[pytest.Item]) -> None:
    """pytest-xdist sees groups in node ids only. Without them each worker would start clusters of its own.

    Raises:
        pytest.UsageError: A test that needs a group has none in its node id.
    """
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark and not item.nodeid.endswith(f"@{mark.args[0]}"):
            raise pytest.UsageError(
                f"{item.nodeid} has lost its group {mark.args[0]}: run pytest-xdist with --dist loadgroup, and pytest below 9.2"
            )
