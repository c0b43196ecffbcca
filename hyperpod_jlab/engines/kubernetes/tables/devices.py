"""Extended resources of nodes and pods by the names that people give them: GPUs with their model, parts of GPUs, NeuronCores, EFA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from hyperpod_jlab.core import instance_types as types
from hyperpod_jlab.core.cluster import Resource
from hyperpod_jlab.engines.kubernetes.submit.resources import to_units

_NON_DEVICE_PREFIXES = (
    "cpu",
    "memory",
    "pods",
    "ephemeral-storage",
    "hugepages-",
    "attachable-volumes-",
)

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
"""Names in Kubernetes, and name and type as people say."""

_COMPUTE = frozenset({"gpu", "hpu", "neuron", "neurondevice", "neuroncore"})

_SAME_DEVICES = ("neurondevice", "neuron", "neuroncore")
"""The Neuron device plug-in offers the same chips under all of these (as chips twice, then as cores); only the first that is there is counted."""


def is_device(name: str) -> bool:
    """Whether a resource's name is that of a device."""
    return not name.startswith(_NON_DEVICE_PREFIXES)


@lru_cache(maxsize=1024)
def split_name(name: str) -> tuple[str, str | None]:
    """Name and type as people say; of an unknown one its own name."""
    if name.startswith("nvidia.com/mig-"):
        return "gpu", name.removeprefix("nvidia.com/")
    return _NAMES.get(name, (name, None))


def computes(name: str) -> bool:
    """Whether a resource by its name in Kubernetes computes."""
    return split_name(name)[0] in _COMPUTE


def find_model(labels: Mapping[str, str], instance_type: str | None) -> str | None:
    """The model of a node's accelerators: as NVIDIA's feature discovery says, else as its type of instance has."""
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
    """Devices, those that compute first.

    Args:
        available: How many there are, in thousandths, by their names in Kubernetes.
        used_amounts: How many pods have asked for; None when that is not known.
        is_usable: Whether new jobs may start there.
        model: The model of those that compute and are whole.
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
    return tuple(
        sorted(
            merge_duplicates(devices), key=lambda device: (not device.accelerator, device.full_name)
        )
    )


def merge_duplicates(devices: Sequence[Resource]) -> list[Resource]:
    """The devices, of which those that are there under several names compute under one only."""
    names = {device.name for device in devices}
    counted = next((name for name in _SAME_DEVICES if name in names), None)
    return [
        _without_count(device)
        if device.name in _SAME_DEVICES and device.name != counted
        else device
        for device in devices
    ]


def _without_count(device: Resource) -> Resource:
    return Resource(device.name, device.type, device.total, device.used, device.free)


def requested_resources(amounts: Iterable[tuple[str, int]]) -> tuple[Resource, ...]:
    """The devices that a job has, or wants, together."""
    requested = dict(amounts)
    return resources(requested, requested)


def accelerators(devices: Iterable[Resource]) -> int:
    """How many compute."""
    return sum(device.total for device in devices if device.accelerator)
