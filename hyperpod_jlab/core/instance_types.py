"""Facts of instance types: as EC2 tells them (``DescribeInstanceTypes``), else from a table of those that HyperPod has.

The table is instance_types.json, which scripts/make_instance_types.py writes. Nothing else in this package knows instance types.
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
"""NeuronCores that the Neuron runtime offers as one, where that is its default (its LNC, the logical NeuronCore configuration)."""


@dataclass(frozen=True)
class InstanceType:
    """An instance type.

    Attributes:
        vcpus: Its vCPUs.
        memory: Its memory in MiB.
        accelerators: GPUs, or Neuron devices.
        model: What they are, such as ``h100``; None: there are none.
        cores: NeuronCores of a device; 0 for GPUs.
        efa: EFA interfaces; None: not known.
        cards: Network cards.
        addresses: IPv4 addresses that one network interface may have.
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
        """NeuronCores of a device, as its runtime counts them by default; 0 for GPUs."""
        return self.cores // _LOGICAL_CORES.get(self.model or "", 1)

    def address_count(self, *, eks: bool, efa_only: bool = False) -> int:
        """Addresses of its subnet that an instance takes in a HyperPod cluster.

        SageMaker's guide, "Prerequisites for using SageMaker HyperPod", has it by the example of P5: with Slurm one for each network card (32), on EKS as
        many as an interface may have on the primary card, for pods, and one for each other card (50 + 31). Interfaces that are for EFA only have none.

        Args:
            eks: Whether the cluster is on EKS.
            efa_only: Whether all cards but the primary one get interfaces for EFA only.
        """
        other_interfaces = 0 if efa_only else self.cards - 1
        return other_interfaces + (self.addresses if eks else 1)


def instance_type(name: str | None) -> InstanceType | None:
    """What the table has of a type, with or without SageMaker's ``ml.`` before it; None: it does not have it."""
    return table().get(ec2_name(name or ""))


def ec2_name(name: str) -> str:
    """What EC2 calls a type."""
    return name.removeprefix("ml.")


@lru_cache(maxsize=1)
def table() -> Mapping[str, InstanceType]:
    """All of the table, by EC2's names."""
    rows = json.loads(TABLE_FILE.read_text(encoding="utf-8"))
    return {name: InstanceType(**row) for name, row in rows.items()}


def from_ec2(description: Mapping[str, Any]) -> InstanceType:
    """What EC2 says of a type: an item of ``DescribeInstanceTypes``."""
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
