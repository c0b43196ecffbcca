"""Instance types as EC2 describes them, and where that is from.

- Which types there are: botocore's model of SageMaker (``ClusterInstanceType``), which is AWS' own list for HyperPod. So a name that the package makes up
  is found out.
- Figures of the types in `CHECKED`: written here by hand after AWS' pages on EC2. So a wrong figure of the package's is found out.
- Figures of all others: the package's own table, else made up. A wrong figure there is a wrong answer here, and nothing finds out.

Whoever checks that a fact of types can be false makes an account's types differ (`Ground.add_types`, or a change of ``Ground.types``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import botocore.session

from hyperpod_jlab.core.instance_types import InstanceType as Facts
from hyperpod_jlab.core.instance_types import ec2_name, table
from testbed.aws.ground import InstanceType

CHECKED = (
    InstanceType("c5.xlarge", vcpus=4, memory=8192),
    InstanceType("m5.2xlarge"),
    InstanceType("g5.xlarge", vcpus=4, memory=16384, gpus=(1, "A10G")),
    InstanceType("g5.2xlarge", gpus=(1, "A10G")),
    InstanceType("g5.8xlarge", vcpus=32, memory=131072, efa=1, gpus=(1, "A10G"), addresses=30),
    InstanceType(*("p5.48xlarge", 32), vcpus=192, memory=2097152, gpus=(8, "H100"), cards=32, addresses=50),
    InstanceType("t3.medium", vcpus=2, memory=4096, addresses=6),
)
"""Types of which the figures are AWS' own."""


def hyperpod_types() -> Iterator[InstanceType]:
    """Each type that HyperPod has; new objects, to be changed by tests as they like."""
    checked = {one.name: one for one in CHECKED}
    for name in _names():
        facts = table().get(name)
        if name in checked:
            yield replace(checked[name])
        else:
            yield InstanceType(name) if facts is None else _of_table(name, facts)


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    model = botocore.session.Session().get_service_model("sagemaker")
    return tuple(sorted(map(ec2_name, model.shape_for("ClusterInstanceType").enum)))


def _of_table(name: str, facts: Facts) -> InstanceType:
    devices = (facts.accelerators, facts.model or "") if facts.accelerators else None
    return InstanceType(
        name,
        efa=facts.efa,
        vcpus=facts.vcpus,
        memory=facts.memory,
        gpus=None if facts.cores else devices,
        neurons=devices if facts.cores else None,
        cores=facts.cores,
        cards=facts.cards,
        addresses=facts.addresses,
    )
