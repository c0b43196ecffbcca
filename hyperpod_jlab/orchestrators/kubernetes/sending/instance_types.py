"""What AWS's instance types have, as far as it decides how a pod asks for them.

Accelerators and EFA interfaces are those of the EC2 guide's tables of accelerated instances and of EFA; types that are missing here simply get no default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class InstanceType:
    """An instance type.

    Attributes:
        accelerators: GPUs, or Neuron devices.
        efa: EFA interfaces.
        cores: NeuronCores of a device, as its runtime counts them by default; 0 for GPUs.
    """

    accelerators: int
    efa: int
    cores: int = 0


_TYPES: Mapping[str, InstanceType] = {
    "p3dn.24xlarge": InstanceType(8, 1),
    "p4d.24xlarge": InstanceType(8, 4),
    "p4de.24xlarge": InstanceType(8, 4),
    "p5.4xlarge": InstanceType(1, 1),
    "p5.48xlarge": InstanceType(8, 32),
    "p5e.48xlarge": InstanceType(8, 32),
    "p5en.48xlarge": InstanceType(8, 16),
    "p6-b200.48xlarge": InstanceType(8, 8),
    "g4dn.8xlarge": InstanceType(1, 1),
    "g4dn.12xlarge": InstanceType(4, 1),
    "g4dn.16xlarge": InstanceType(1, 1),
    "g4dn.metal": InstanceType(8, 1),
    "g5.8xlarge": InstanceType(1, 1),
    "g5.12xlarge": InstanceType(4, 1),
    "g5.16xlarge": InstanceType(1, 1),
    "g5.24xlarge": InstanceType(4, 1),
    "g5.48xlarge": InstanceType(8, 1),
    "g6.8xlarge": InstanceType(1, 1),
    "g6.12xlarge": InstanceType(4, 1),
    "g6.16xlarge": InstanceType(1, 1),
    "g6.24xlarge": InstanceType(4, 1),
    "g6.48xlarge": InstanceType(8, 1),
    "g6e.8xlarge": InstanceType(1, 1),
    "g6e.12xlarge": InstanceType(4, 1),
    "g6e.16xlarge": InstanceType(1, 1),
    "g6e.24xlarge": InstanceType(4, 2),
    "g6e.48xlarge": InstanceType(8, 4),
    "trn1.2xlarge": InstanceType(1, 0, 2),
    "trn1.32xlarge": InstanceType(16, 8, 2),
    "trn1n.32xlarge": InstanceType(16, 16, 2),
    "trn2.48xlarge": InstanceType(16, 16, 4),
    "trn2u.48xlarge": InstanceType(16, 16, 4),
    "inf2.xlarge": InstanceType(1, 0, 2),
    "inf2.8xlarge": InstanceType(1, 0, 2),
    "inf2.24xlarge": InstanceType(6, 0, 2),
    "inf2.48xlarge": InstanceType(12, 0, 2),
}


def instance_type(name: str | None) -> InstanceType | None:
    """What is known of a type, with or without SageMaker's ``ml.`` before it."""
    return _TYPES.get((name or "").removeprefix("ml."))
