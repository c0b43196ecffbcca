"""Extended resources of nodes and pods by the names that people give them: GPUs with their model, parts of GPUs, NeuronCores, EFA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from hyperpod_jlab.core import instance_types as types
from hyperpod_jlab.core.cluster import Resource
from hyperpod_jlab.engines.kubernetes.submit.resources import whole

_NOT_DEVICES = ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-", "attachable-volumes-")

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

_SAME = ("neurondevice", "neuron", "neuroncore")
"""The Neuron device plug-in offers the same chips under all of these (as chips twice, then as cores); only the first that is there is counted."""


def is_device(name: str) -> bool:
    """Whether a resource's name is that of a device."""
    return not name.startswith(_NOT_DEVICES)


@lru_cache(maxsize=1024)
def named(name: str) -> tuple[str, str | None]:
    """Name and type as people say; of an unknown one its own name."""
    if name.startswith("nvidia.com/mig-"):
        return "gpu", name.removeprefix("nvidia.com/")
    return _NAMES.get(name, (name, None))


def computes(name: str) -> bool:
    """Whether a resource by its name in Kubernetes computes."""
    return named(name)[0] in _COMPUTE


def model_of(labels: Mapping[str, str], instance_type: str | None) -> str | None:
    """The model of a node's accelerators: as NVIDIA's feature discovery says, else as its type of instance has."""
    product = labels.get("nvidia.com/gpu.product")
    if product:
        return product.removeprefix("NVIDIA-").removesuffix("-SHARED").lower()
    known = types.instance_type(instance_type)
    return known.model if known is not None else None


def resources(
    has: Mapping[str, int],
    used: Mapping[str, int] | None,
    *,
    usable: bool = True,
    model: str | None = None,
) -> tuple[Resource, ...]:
    """Devices, those that compute first.

    Args:
        has: How many there are, in thousandths, by their names in Kubernetes.
        used: How many pods have asked for; None when that is not known.
        usable: Whether new jobs may start there.
        model: The model of those that compute and are whole.
    """
    found = []
    for name, amount in has.items():
        if not is_device(name) or amount <= 0:
            continue
        plain, kind = named(name)
        total, taken = whole(amount), whole((used or {}).get(name, 0))
        found.append(
            Resource(
                name=plain,
                type=kind or (model if plain in _COMPUTE else None),
                total=total,
                used=min(total, taken),
                free=max(0, total - taken) if usable and used is not None else 0,
                accelerator=plain in _COMPUTE,
            )
        )
    return tuple(sorted(once(found), key=lambda one: (not one.accelerator, one.full_name)))


def once(found: Sequence[Resource]) -> list[Resource]:
    """The devices, of which those that are there under several names compute under one only."""
    names = {one.name for one in found}
    counted = next((name for name in _SAME if name in names), None)
    return [
        _not_counted(one) if one.name in _SAME and one.name != counted else one for one in found
    ]


def _not_counted(one: Resource) -> Resource:
    return Resource(one.name, one.type, one.total, one.used, one.free)


def wanted(amounts: Iterable[tuple[str, int]]) -> tuple[Resource, ...]:
    """The devices that a job has, or wants, together."""
    asked = dict(amounts)
    return resources(asked, asked)


def accelerators(found: Iterable[Resource]) -> int:
    """How many compute."""
    return sum(one.total for one in found if one.accelerator)
