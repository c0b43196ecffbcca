"""Only engines know which engine they are: code outside of them asks for concerns and facts, never for a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hyperpod_jlab

ROOT = Path(hyperpod_jlab.__file__).parent

NAMES = frozenset({"slurm", "kubernetes"})
CLASSES = frozenset({"SlurmCluster", "KubernetesCluster"})
ENGINES = tuple(f"hyperpod_jlab.orchestrators.{name}" for name in NAMES)

ALLOWED = {
    "model/config.py": "the kinds of clusters in the configuration",
    "model/scheduler.py": "the names of HyperPod's two orchestrators, once",
    "services/reach.py": "tries HyperPod clusters that nobody configured yet; HyperPod has these two",
    "services/run_metrics.py": "CloudWatch names the GPUs of a run on EKS by its pods",
    "admin/cluster_config": "AWS' own requests differ by the cluster's orchestrator",
    "admin/lifecycle": "life cycle scripts of HyperPod differ by the cluster's orchestrator",
    "admin/lambdas": "a parameter of the CloudFormation stack; no configuration is there",
}
"""Places that name an engine, and why."""


def test_only_few_places_name_an_engine() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith("orchestrators/"):
            continue
        lines = [f"{place}:{line}" for line in engine_names(ast.parse(path.read_text()))]
        if lines:
            folder = path.parent.relative_to(ROOT).as_posix()
            found.setdefault(folder if folder in ALLOWED else place, []).extend(lines)
    assert {place: lines for place, lines in found.items() if place not in ALLOWED} == {}
    assert sorted(ALLOWED) == sorted(found), "a place that names none any more is not allowed to"


def test_the_search_finds_what_it_should() -> None:
    text = """
if engine.kind == "slurm": ...
isinstance(config, KubernetesCluster)
from hyperpod_jlab.engines.slurm.client import SlurmClient
kind: Literal["here", "kubernetes"]
words = "slurm and kubernetes"
match kind:
    case "slurm": ...
f"{'slurm'}"
"""
    assert engine_names(ast.parse(text)) == [2, 3, 4, 5, 8, 9]


def engine_names(tree: ast.Module) -> list[int]:
    """The lines that name an engine."""
    return sorted({line for node in ast.walk(tree) for line in _lines(node)})


def _lines(node: ast.AST) -> Iterator[int]:
    match node:
        case ast.Constant(value=str(value)) if value in NAMES:
            yield node.lineno
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in CLASSES:
            yield node.lineno
        case ast.ImportFrom(module=str(module)) if module.startswith(ENGINES):
            yield node.lineno
        case ast.Import(names=names) if any(one.name.startswith(ENGINES) for one in names):
            yield node.lineno
