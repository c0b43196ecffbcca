"""What the example account's admins make clusters from; the configurations in ``examples/clusters`` name it."""

from __future__ import annotations

from testbed.aws.ground import TRUST, InstanceType
from testbed.aws.instance_types import hyperpod_types
from testbed.aws.network import OTHER_SUBNET, SUBNET, VPC, NetworkAcl, SecurityGroup, Subnet, open_to
from testbed.aws.state import Account

CLUSTER_NODES = "sg-0c1a5e5000000eee5"
"""A security group for instances with an EFA: it lets all of itself in and out, and Lustre's servers."""

PUBLIC_SUBNET = "subnet-0aaaaaaaaaaaaaaaa"
SCRIPTS = "sagemaker-hyperpod-scripts"
ROLE = "HyperPodExecutionRole"


def add_ground(account: Account, region: str) -> None:
    """Add subnets, a security group, a role, a bucket with life cycle scripts, quotas, instance types and an EKS cluster."""
    network = account.networks[region]
    itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": CLUSTER_NODES}]}
    network.add(
        Subnet(SUBNET),
        Subnet(OTHER_SUBNET, zone="b", gateway=None, addresses="10.0.2.0/24"),
        Subnet(PUBLIC_SUBNET, gateway="igw-0123456789abcdef0", addresses="10.0.3.0/24"),
        NetworkAcl("acl-0123456789abcdef0", subnets=[SUBNET, OTHER_SUBNET, PUBLIC_SUBNET]),
        SecurityGroup(CLUSTER_NODES, "hyperpod-cluster", [itself]),
    )
    group = network.groups[CLUSTER_NODES]
    group.outbound = [itself, *group.outbound]
    servers = network.groups["sg-0f5e5000000000cc3"]
    group.inbound = [itself, *open_to(servers.group_id)]
    servers.inbound = [*servers.inbound, *open_to(CLUSTER_NODES)]
    servers.outbound = [*servers.outbound, *open_to(CLUSTER_NODES)]
    ground = account.ground
    ground.roles[ROLE] = TRUST
    ground.buckets[SCRIPTS] = [
        "slurm/on_create.sh",
        "slurm/lifecycle_script.py",
        "slurm/provisioning_parameters.json",
        "slurm-api/on_create.sh",
        "eks/on_create.sh",
    ]
    # And one that HyperPod does not have.
    ground.add_types(*hyperpod_types(), InstanceType("p3.16xlarge", current=False))
    ground.quotas = {
        **{f"ml.{name} for cluster usage": 8.0 for name in ground.types},
        "Maximum number of instances allowed per SageMaker HyperPod cluster": 20.0,
        "Total number of instances allowed across SageMaker HyperPod clusters": 40.0,
    }
    ground.eks["training"] = {
        "resourcesVpcConfig": {"vpcId": VPC, "endpointPublicAccess": False},
        "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
    }
