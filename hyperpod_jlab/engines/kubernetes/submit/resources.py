"""A pod's resources: requests equal limits, so that a run gets what it requested and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.instance_types import InstanceType
from hyperpod_jlab.core.spec import Accelerators, JobSpec

EFA = "vpc.amazonaws.com/efa"
GPU = "nvidia.com/gpu"
NEURON_DEVICE = "aws.amazon.com/neurondevice"
NEURON_CORE = "aws.amazon.com/neuroncore"

_HUGE_PAGES = ("hugepages-2Mi", "5120Mi")
"""As in AWS's samples for EFA; its libraries use huge pages on types with several interfaces."""

_MIN_EFA_DEVICES = 4
"""Number of EFA interfaces from which on huge pages are requested."""

_MIG = "mig-"


def resources(spec: JobSpec, instance_type: InstanceType | None) -> dict[str, str]:
    """Requests and limits by resource.

    Args:
        spec: The run's spec.
        instance_type: Facts about its instance type; None if unknown.
    """
    spec_resources = spec.resources
    requested: dict[str, str] = {}
    if spec_resources.cpus is not None:
        requested["cpu"] = str(spec_resources.cpus)
    if spec_resources.memory is not None:
        requested["memory"] = str(spec_resources.memory)
    devices = _devices(spec_resources.accelerator, instance_type)
    requested.update({name: str(count) for name, count in devices.items()})
    efa = _efa(spec, devices, instance_type)
    if efa:
        requested[EFA] = str(efa)
        # Kubernetes accepts huge pages only together with cpu or memory.
        if efa >= _MIN_EFA_DEVICES and requested.keys() & {"cpu", "memory"}:
            requested[_HUGE_PAGES[0]] = _HUGE_PAGES[1]
    return requested


def _devices(accelerator: Accelerators, instance_type: InstanceType | None) -> dict[str, int]:
    count = accelerator.count
    if not count:
        return {}
    kind = accelerator.type or ""
    if accelerator.kind == "neuron":
        # A spec counts NeuronCores; whole devices are requested if the number divides evenly.
        cores = instance_type.logical_cores if instance_type is not None else 0
        if cores and count % cores == 0:
            return {NEURON_DEVICE: count // cores}
        return {NEURON_CORE: count}
    if kind.startswith(_MIG):
        return {f"nvidia.com/{kind}": count}
    return {GPU: count}


def _efa(spec: JobSpec, devices: Mapping[str, int], instance_type: InstanceType | None) -> int:
    """The spec's number, else the type's if all accelerators on more than one node are requested."""
    if spec.resources.efa is not None:
        return spec.resources.efa
    return (
        (instance_type.efa or 0) if instance_type is not None and _uses_whole_nodes(spec, devices, instance_type) else 0
    )


def _uses_whole_nodes(spec: JobSpec, devices: Mapping[str, int], instance_type: InstanceType) -> bool:
    """Whether all accelerators on more than one node are requested."""
    device_counts = {devices.get(GPU), devices.get(NEURON_DEVICE)}
    return spec.resources.nodes > 1 and instance_type.accelerators in device_counts


def instance_findings(spec: JobSpec, instance_type: InstanceType | HyperpodError | None) -> Iterator[Finding]:
    """Unknown facts about an instance type, for which nothing is requested.

    Args:
        spec: The run's spec.
        instance_type: Facts about its instance type. If unknown: why the EC2 query failed, or None
            if it succeeded.
    """
    name = spec.resources.instance_type
    if name is None or spec.resources.efa is not None:
        return
    if not isinstance(instance_type, InstanceType):
        reason = f" ({instance_type.message})" if instance_type is not None else ""
        yield _unknown_finding(f"{name[:60]} is not a known instance type{reason}")
    elif instance_type.efa is None and _uses_whole_nodes(
        spec, _devices(spec.resources.accelerator, instance_type), instance_type
    ):
        yield _unknown_finding(f"the number of EFA interfaces of {name} on HyperPod is unknown")


def _unknown_finding(subject: str) -> Finding:
    return Finding(
        level="warning",
        code="unknown_instance_type",
        message=f"{subject}: no EFA is requested, and accelerators are as in the spec",
        hint="set resources.efa to the EFA interfaces of a node (0 for none)",
        field="resources.instance_type",
    )


def tolerations(requested: Mapping[str, str]) -> list[dict[str, Any]]:
    """Tolerations for taints that repel pods without the node's devices."""
    keys = {
        GPU: "nvidia.com/gpu",
        NEURON_DEVICE: "aws.amazon.com/neuron",
        NEURON_CORE: "aws.amazon.com/neuron",
        EFA: EFA,
    }
    toleration_keys = [keys.get(name, GPU if name.startswith("nvidia.com/mig-") else "") for name in requested]
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in dict.fromkeys(toleration_keys) if key]


# --------------------------------------------------------------------------------------------------
# Kubernetes' quantities (``500m``, ``24581696Ki``, ``1e3``) as integer thousandths: exact, and fast
# to add.

_UNITS = {
    "n": Decimal(10) ** -9,
    "u": Decimal(10) ** -6,
    "m": Decimal(10) ** -3,
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    **{f"{letter}i": Decimal(1024) ** exponent for exponent, letter in enumerate("KMGTPE", start=1)},
}
"""Suffixes and factors (apimachinery, pkg/api/resource/quantity.go)."""

_QUANTITY = re.compile(r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)")


@lru_cache(maxsize=4096)
def _parsed(text: str) -> int:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return 0
    exponent = Decimal(10) ** int(match[2]) if match[2] else _UNITS[match[3] or ""]
    return int((Decimal(match[1]) * exponent * 1000).to_integral_value(rounding="ROUND_CEILING"))


def milli(value: Any) -> int:
    """Thousandths in a quantity, rounded up as Kubernetes does; 0 for an invalid one, which must not hide the object."""
    return _parsed(str(value))


def to_units(thousandths: int) -> int:
    """Whole units in thousandths."""
    return thousandths // 1000
