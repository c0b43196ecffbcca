"""Only engines know which engine they are: code outside of them asks for concerns and facts, never for a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hyperpod_jlab
from hyperpod_jlab.core import scheduler
from hyperpod_jlab.engines import registry

PACKAGE = hyperpod_jlab.__name__
ENGINES = registry.__name__.rpartition(".")[0]

NAMES = frozenset({"slurm", "kubernetes"})
CLASSES = frozenset({"SlurmCluster", "KubernetesCluster"})
CONSTANTS = frozenset({"SLURM", "KUBERNETES"})
FOLDERS = tuple(f"{ENGINES}.{name}" for name in NAMES)

ALLOWED = {
    "hyperpod_jlab.core.config": "the kinds of clusters in the configuration",
    "hyperpod_jlab.core.scheduler": "the names of HyperPod's two orchestrators, once",
    "hyperpod_jlab.core.hyperpod": "AWS' field `Orchestrator`: the one place that asks what it is",
    "hyperpod_jlab.core.reach": "writes the configuration of a HyperPod cluster",
    "hyperpod_jlab.aws.clusters": "reads AWS' field `Orchestrator`; a hint says what to write into the configuration",
    "hyperpod_jlab.clusters.reach": "tries HyperPod clusters that nobody configured yet; HyperPod has these two",
    "hyperpod_jlab.admin.cluster_config": "AWS' own requests differ by the cluster's orchestrator",
    "hyperpod_jlab.admin.lifecycle": "scripts for spaces differ by what AWS says of the cluster, and write its configuration",
    "hyperpod_jlab.admin.lambdas": "a parameter of the CloudFormation stack; no configuration is there",
}
"""Modules and packages that name an engine, and why."""


def test_only_few_modules_name_an_engine() -> None:
    root = Path(hyperpod_jlab.__file__).parent
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        module = ".".join([PACKAGE, *path.relative_to(root).with_suffix("").parts])
        if module.startswith(f"{ENGINES}."):
            continue
        place = next((one for one in ALLOWED if f"{module}.".startswith(f"{one}.")), module)
        lines = [f"{path.name}:{line}" for line in engine_names(ast.parse(path.read_text()))]
        if lines:
            found.setdefault(place, []).extend(lines)
    assert {place: lines for place, lines in found.items() if place not in ALLOWED} == {}
    assert sorted(ALLOWED) == sorted(found), "a module that names none any more needs no leave"


def test_the_search_finds_what_it_should() -> None:
    text = f"""
if engine.kind == "slurm": ...
isinstance(config, KubernetesCluster)
from {ENGINES}.slurm.client import SlurmClient
kind: Literal["here", "kubernetes"]
words = "slurm and kubernetes"
from {scheduler.__name__} import SLURM, Scheduler
match kind:
    case "slurm": ...
words = ["slurm"]
"""
    assert engine_names(ast.parse(text)) == [2, 3, 4, 5, 7, 9, 10]


def engine_names(tree: ast.Module) -> list[int]:
    """The lines that name an engine."""
    return sorted({line for node in ast.walk(tree) for line in _lines(node)})


def _lines(node: ast.AST) -> Iterator[int]:
    match node:
        case ast.Constant(value=str(value)) if value in NAMES:
            yield node.lineno
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in CLASSES:
            yield node.lineno
        case ast.ImportFrom(module=str(module)) if module.startswith(FOLDERS):
            yield node.lineno
        case ast.ImportFrom(module=str(module), names=names) if module == scheduler.__name__:
            if CONSTANTS & {one.name for one in names}:
                yield node.lineno
        case ast.Import(names=names) if any(one.name.startswith(FOLDERS) for one in names):
            yield node.lineno
