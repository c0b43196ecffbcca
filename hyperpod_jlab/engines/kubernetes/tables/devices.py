"""Extended resources of nodes and pods under their common names: GPUs with their model, GPU partitions, NeuronCores, EFA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from hyperpod_jlab.core import instance_types as types
from hyperpod_jlab.core.cluster import Resource
from hyperpod_jlab.engines.kubernetes.submit.resources import to_units

_NON_DEVICE_PREFIXES = ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-", "attachable-volumes-")

_NAMES = {
    "nvidia.com/gpu": ("gpu", None),
    "nvidia.com/gpu.shared": ("gpu", "shared"),
    "amd.com/gpu": ("gpu", None),
    "gpu.intel.com/i915": ("gpu", None),
    "gpu.intel.com/xe": ("gpu", None),
    "habana.ai/gaudi": ("hpu", None),
    "aws.amazon.com/neurondevice": ("neurondevice", None),
    "aws.amazon.com/neuron": ("neuron", None),
    "aws.amazon.com/neuroncore": ("neuroncore", None),
    "vpc.amazonaws.com/efa": ("efa", None),
}
"""Kubernetes names, and our name and type."""

_COMPUTE = frozenset({"gpu", "hpu", "neuron", "neurondevice", "neuroncore"})

_SAME_DEVICES = ("neurondevice", "neuron", "neuroncore")
"""The Neuron device plug-in offers the same chips under all of these names (twice as chips, then as cores); only the first one present is counted."""


def is_device(name: str) -> bool:
    """Whether a resource name is a device."""
    return not name.startswith(_NON_DEVICE_PREFIXES)


@lru_cache(maxsize=1024)
def split_name(name: str) -> tuple[str, str | None]:
    """Our name and type; an unknown resource keeps its own name."""
    if name.startswith("nvidia.com/mig-"):
        return "gpu", name.removeprefix("nvidia.com/")
    return _NAMES.get(name, (name, None))


def computes(name: str) -> bool:
    """Whether a Kubernetes resource is a compute device."""
    return split_name(name)[0] in _COMPUTE


def find_model(labels: Mapping[str, str], instance_type: str | None) -> str | None:
    """The model of a node's accelerators, from NVIDIA's feature discovery, else from its instance type."""
    product = labels.get("nvidia.com/gpu.product")
    if product:
        return product.removeprefix("NVIDIA-").removesuffix("-SHARED").lower()
    instance_type_known = types.instance_type(instance_type)
    return instance_type_known.model if instance_type_known is not None else None


def resources(
    available: Mapping[str, int],
    used_amounts: Mapping[str, int] | None,
    *,
    is_usable: bool = True,
    model: str | None = None,
) -> tuple[Resource, ...]:
    """Devices, compute devices first.

    Args:
        available: The amounts in thousandths, by Kubernetes name.
        used_amounts: The amounts that pods request; None when unknown.
        is_usable: Whether new jobs may start there.
        model: The model of whole compute devices.
    """
    devices = []
    for name, amount in available.items():
        if not is_device(name) or amount <= 0:
            continue
        base_name, kind = split_name(name)
        total, used_count = to_units(amount), to_units((used_amounts or {}).get(name, 0))
        devices.append(
            Resource(
                name=base_name,
                type=kind or (model if base_name in _COMPUTE else None),
                total=total,
                used=min(total, used_count),
                free=max(0, total - used_count) if is_usable and used_amounts is not None else 0,
                accelerator=base_name in _COMPUTE,
            )
        )
    return tuple(sorted(merge_duplicates(devices), key=lambda device: (not device.accelerator, device.full_name)))


def merge_duplicates(devices: Sequence[Resource]) -> list[Resource]:
    """The devices, counting those offered under several names only once."""
    names = {device.name for device in devices}
    counted = next((name for name in _SAME_DEVICES if name in names), None)
    return [
        _without_count(device) if device.name in _SAME_DEVICES and device.name != counted else device
        for device in devices
    ]


def _without_count(device: Resource) -> Resource:
    return Resource(device.name, device.type, device.total, device.used, device.free)


def requested_resources(amounts: Iterable[tuple[str, int]]) -> tuple[Resource, ...]:
    """The devices that a job has, or requests, in total."""
    requested = dict(amounts)
    return resources(requested, requested)


def accelerators(devices: Iterable[Resource]) -> int:
    """The number of compute devices."""
    return sum(device.total for device in devices if device.accelerator)
