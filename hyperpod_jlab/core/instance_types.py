"""Facts about instance types: from EC2 (``DescribeInstanceTypes``), else from a table of the types that HyperPod supports.

The table is instance_types.json, which scripts/make_instance_types.py generates. No other module of this package has facts about instance types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

TABLE_FILE = Path(__file__).with_name("instance_types.json")

_LOGICAL_CORES = {"trainium2": 2}
"""Physical NeuronCores per logical NeuronCore, by the runtime's default LNC (logical NeuronCore configuration)."""


@dataclass(frozen=True)
class InstanceType:
    """An instance type.

    Attributes:
        vcpus: Number of vCPUs.
        memory: Memory in MiB.
        accelerators: Number of GPUs or Neuron devices.
        model: The accelerator model, such as ``h100``; None without accelerators.
        cores: NeuronCores per device; 0 for GPUs.
        efa: Number of EFA interfaces; None: unknown.
        cards: Number of network cards.
        addresses: Maximum IPv4 addresses per network interface.
    """

    vcpus: int
    memory: int
    accelerators: int = 0
    model: str | None = None
    cores: int = 0
    efa: int | None = 0
    cards: int = 1
    addresses: int = 1

    @property
    def logical_cores(self) -> int:
        """Logical NeuronCores per device with the runtime's default; 0 for GPUs."""
        return self.cores // _LOGICAL_CORES.get(self.model or "", 1)

    def address_count(self, *, eks: bool, efa_only: bool = False) -> int:
        """Number of subnet addresses that an instance uses in a HyperPod cluster.

        SageMaker's guide, "Prerequisites for using SageMaker HyperPod", gives the example of P5: with Slurm one per network card (32); on EKS the
        maximum of an interface on the primary card, for pods, and one per other card (50 + 31). EFA-only interfaces use none.

        Args:
            eks: Whether the cluster is on EKS.
            efa_only: Whether all cards but the primary one get EFA-only interfaces.
        """
        other_interfaces = 0 if efa_only else self.cards - 1
        return other_interfaces + (self.addresses if eks else 1)


def instance_type(name: str | None) -> InstanceType | None:
    """The table's entry for a type, with or without SageMaker's ``ml.`` prefix; None if there is none."""
    return table().get(ec2_name(name or ""))


def ec2_name(name: str) -> str:
    """EC2's name of a type."""
    return name.removeprefix("ml.")


@lru_cache(maxsize=1)
def table() -> Mapping[str, InstanceType]:
    """The whole table, by EC2's names."""
    rows = json.loads(TABLE_FILE.read_text(encoding="utf-8"))
    return {name: InstanceType(**row) for name, row in rows.items()}


def from_ec2(description: Mapping[str, Any]) -> InstanceType:
    """A type from EC2's description: an item of ``DescribeInstanceTypes``."""
    network = description.get("NetworkInfo") or {}
    gpus = (description.get("GpuInfo") or {}).get("Gpus") or ()
    neurons = (description.get("NeuronInfo") or {}).get("NeuronDevices") or ()
    devices = gpus or neurons
    name = str(devices[0].get("Name") or "") if devices else ""
    efa = (network.get("EfaInfo") or {}).get("MaximumEfaInterfaces")
    return InstanceType(
        vcpus=int((description.get("VCpuInfo") or {}).get("DefaultVCpus") or 0),
        memory=int((description.get("MemoryInfo") or {}).get("SizeInMiB") or 0),
        accelerators=sum(int(device.get("Count") or 0) for device in devices),
        model="-".join(name.lower().split()) or None,
        cores=int((neurons[0].get("CoreInfo") or {}).get("Count") or 0) if neurons else 0,
        efa=efa if network.get("EfaSupported") else 0,
        cards=int(network.get("MaximumNetworkCards") or 1),
        addresses=int(network.get("Ipv4AddressesPerInterface") or 1),
    )
