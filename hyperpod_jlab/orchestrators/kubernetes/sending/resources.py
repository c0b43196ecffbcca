"""What a pod asks its node for: requests and limits are the same, so that a run gets what it asked for and no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.model.spec import Accelerators, JobSpec
from hyperpod_jlab.orchestrators.kubernetes.sending.instance_types import (
    InstanceType,
    instance_type,
)

EFA = "vpc.amazonaws.com/efa"
GPU = "nvidia.com/gpu"
NEURON_DEVICE = "aws.amazon.com/neurondevice"
NEURON_CORE = "aws.amazon.com/neuroncore"

_HUGE_PAGES = ("hugepages-2Mi", "5120Mi")
"""As AWS's samples ask for with EFA; its libraries take them on the types with several interfaces."""

_MANY = 4
"""EFA interfaces from which on huge pages are asked for."""

_MIG = "mig-"


def resources(spec: JobSpec) -> dict[str, str]:
    """Requests and limits by resource."""
    asked = spec.resources
    known = instance_type(asked.instance_type)
    wanted: dict[str, str] = {}
    if asked.cpus is not None:
        wanted["cpu"] = str(asked.cpus)
    if asked.memory is not None:
        wanted["memory"] = str(asked.memory)
    devices = _devices(asked.accelerator, known)
    wanted.update({name: str(count) for name, count in devices.items()})
    efa = _efa(spec, devices, known)
    if efa:
        wanted[EFA] = str(efa)
        # Kubernetes takes huge pages only beside cpu or memory.
        if efa >= _MANY and wanted.keys() & {"cpu", "memory"}:
            wanted[_HUGE_PAGES[0]] = _HUGE_PAGES[1]
    return wanted


def _devices(accelerator: Accelerators, known: InstanceType | None) -> dict[str, int]:
    count = accelerator.count
    if not count:
        return {}
    kind = accelerator.type or ""
    if accelerator.kind == "neuron":
        # A spec counts NeuronCores; devices are what is handed out, where they come out even.
        if known is not None and known.cores and count % known.cores == 0:
            return {NEURON_DEVICE: count // known.cores}
        return {NEURON_CORE: count}
    if kind.startswith(_MIG):
        return {f"nvidia.com/{kind}": count}
    return {GPU: count}


def _efa(spec: JobSpec, devices: Mapping[str, int], known: InstanceType | None) -> int:
    """As the spec says; else what the type has, when all of its accelerators are asked for on more than one node."""
    if spec.resources.efa is not None:
        return spec.resources.efa
    all_of_it = known is not None and known.accelerators in {
        devices.get(GPU),
        devices.get(NEURON_DEVICE),
    }
    return known.efa if known is not None and all_of_it and spec.resources.nodes > 1 else 0


def tolerations(wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    """Taints by which nodes keep away those that do not ask for their devices."""
    keys = {
        GPU: "nvidia.com/gpu",
        NEURON_DEVICE: "aws.amazon.com/neuron",
        NEURON_CORE: "aws.amazon.com/neuron",
        EFA: EFA,
    }
    found = [keys.get(name, GPU if name.startswith("nvidia.com/mig-") else "") for name in wanted]
    return [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"}
        for key in dict.fromkeys(found)
        if key
    ]
