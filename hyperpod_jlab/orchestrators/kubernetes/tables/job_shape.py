"""What the pods of a job are: how many, what each asks for, where they may run; whichever of our kinds it is of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.tables.pods import Amounts, amounts_of, requests_of


@dataclass(frozen=True, slots=True)
class Part:
    """Pods of a job that are alike.

    Attributes:
        pods: How many.
        each: What each of them asks for.
        selector: Labels that their nodes must have.
    """

    pods: int
    each: Amounts
    selector: tuple[tuple[str, str], ...] = ()


def parts_of(spec: Mapping[str, Any]) -> list[Part]:
    """The parts of a job, by the object's ``spec``; those that are alike are one."""
    found: dict[Part, int] = {}
    for part in _parts(spec):
        alike = replace(part, pods=1)
        found[alike] = found.get(alike, 0) + part.pods
    return [replace(part, pods=count) for part, count in found.items()]


def together(parts: Iterable[Part]) -> Amounts:
    """What all pods ask for together."""
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.each:
            total[name] = total.get(name, 0) + amount * part.pods
    return tuple(sorted(total.items()))


def _parts(spec: Mapping[str, Any]) -> list[Part]:
    trainer = spec.get("trainer")
    if isinstance(trainer, Mapping) or "runtimeRef" in spec:
        trainer = trainer or {}
        overrides = [one for one in spec.get("podSpecOverrides") or [] if isinstance(one, Mapping)]
        labels: Mapping[str, Any] = next(
            (one["nodeSelector"] for one in overrides if one.get("nodeSelector")), {}
        )
        each = amounts_of(trainer.get("resourcesPerNode") or {})
        return [Part(int(trainer.get("numNodes") or 1), each, _selector(labels))]
    return [_part(one) for one in _replicas(spec)]


def _part(replica: Mapping[str, Any]) -> Part:
    pod = (replica.get("template") or {}).get("spec") or {}
    count = replica.get("replicas")
    labels = pod.get("nodeSelector") or {}
    return Part(1 if count is None else int(count), tuple(requests_of(pod)), _selector(labels))


def _selector(labels: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(name), str(value)) for name, value in labels.items()))


def _replicas(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parts of a job: how many pods, and their template."""
    replicas = spec.get("pytorchReplicaSpecs") or spec.get("replicaSpecs") or {}
    listed = list(replicas.values()) if isinstance(replicas, Mapping) else list(replicas)
    if listed or "template" not in spec:
        return listed
    parallel = int(spec.get("parallelism") or 1)
    count = min(parallel, int(spec.get("completions") or parallel))
    return [{"replicas": count, "template": spec["template"]}]
