"""What HyperPod clusters are made from: roles, buckets, quotas and instance types; plain data, to be changed by tests as they like."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
"""The trust policy of a role of instances."""


@dataclass
class InstanceType:
    """An instance type of EC2, by EC2's name.

    Attributes:
        name: The name.
        efa: EFA interfaces; None: EC2 says that it has some, and not how many.
        threads: Threads that a core may have.
        current: Whether it is of a current generation.
        gpus: Number and name of its GPUs.
        neurons: The same of its Neuron devices.
        cores: NeuronCores of a device.
        cards: Network cards.
        addresses: IPv4 addresses of an interface.
        vcpus: vCPUs.
        memory: Memory in MiB.
    """

    name: str
    efa: int | None = 0
    threads: tuple[int, ...] = (1, 2)
    current: bool = True
    gpus: tuple[int, str] | None = None
    neurons: tuple[int, str] | None = None
    cores: int = 2
    cards: int = 1
    addresses: int = 15
    vcpus: int = 8
    memory: int = 32768


@dataclass
class Ground:
    """All of it.

    Attributes:
        roles: What each role trusts, as its policy document, by the role's name.
        buckets: The keys in each bucket of S3.
        quotas: SageMaker's quotas by their names.
        types: EC2's instance types by their names.
        eks: EKS clusters that run, with further members of their descriptions as in the API, by name.
        pace: How long what becomes of clusters takes, of what it takes on AWS.
        failing: Why the next instance of a group, by the group's name, does not come up once it is made.
    """

    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    buckets: dict[str, list[str]] = field(default_factory=dict)
    quotas: dict[str, float] = field(default_factory=dict)
    types: dict[str, InstanceType] = field(default_factory=dict)
    eks: dict[str, dict[str, Any]] = field(default_factory=dict)
    pace: float = 1.0
    failing: dict[str, str] = field(default_factory=dict)

    def add_types(self, *types: InstanceType) -> None:
        """Add instance types."""
        self.types.update({one.name: one for one in types})
