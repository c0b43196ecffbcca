"""An account to look at: clusters in several states on both orchestrators."""

from __future__ import annotations

from typing import Any

from testbed.aws.example_governance import add_governance
from testbed.aws.example_ground import add_ground
from testbed.aws.network import OTHER_SUBNET, SUBNET, Network, NetworkInterface, SecurityGroup, open_to
from testbed.aws.state import Account, Domain, LustreFileSystem, Profile, Space, attached, lustre_at

ACCESS_KEY = "AKIATESTBEDEXAMPLE01"
"""The key that may do everything there."""

DOMAIN = "d-example"
"""The domain of Studio."""

FILE_SYSTEM, MOUNT_NAME = "fs-0123456789abcdef0", "x5kjbbmv"
"""The file system that one of the clusters mounts."""


def client_environment(url: str, region: str) -> dict[str, str]:
    """What makes a process a client of the endpoint at this address."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,  # boto3 by itself reads this one only
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": "of-the-testbed",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def lustre(region: str) -> dict[str, Any]:
    """A file system of FSx for Lustre, as an instance group mounts it."""
    return {
        "FsxLustreConfig": {
            "DnsName": f"{FILE_SYSTEM}.fsx.{region}.amazonaws.com",
            "MountName": MOUNT_NAME,
            "MountPath": "/fsx",
        }
    }


def example_account(region: str) -> Account:
    """Four clusters of one region: well, growing, failed, and one of which the API names no orchestrator; a space of Studio."""
    account = Account()
    account.add_caller(ACCESS_KEY)
    slurm = account.add_cluster(
        *("ml-cluster", region),
        orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}},
        tags={"team": "vision", "stage": "test"},
    )
    slurm.add_group("controller-machine", "ml.c5.xlarge", 1, slurm_node_type="Controller")
    slurm.add_group(
        *("worker-group-1", "ml.p5.48xlarge", 4),
        slurm_node_type="Compute",
        storage=[lustre(region)],
        capacity={"OnDemand": {}},
        life_cycle={"SourceS3Uri": "s3://sagemaker-scripts/hyperpod", "OnCreate": "on_create.sh"},
        checks=["InstanceStress", "InstanceConnectivity"],
    )
    slurm.nodes[-1].status = "Failure"
    slurm.nodes[-1].message = "EC2 health check failed; the instance is being replaced"
    add_others(account, region)
    account.spaces[DOMAIN, "work"] = Space("alice", file_systems=[attached(FILE_SYSTEM)])
    add_file_system(account, region)
    account.session_preferences[region] = {"runAsEnabled": True, "runAsDefaultUser": ""}
    account.role_tags["StudioRole"] = {"SSMSessionRunAs": "alice"}
    return account


def add_file_system(account: Account, region: str) -> None:
    """Add the file system that a cluster mounts, with a folder that is linked to S3, and the profile of the space's owner."""
    account.profiles[DOMAIN, "alice"] = Profile()
    link = {
        "AssociationId": "dra-0123456789abcdef0",
        "FileSystemPath": "/alice/data",
        "DataRepositoryPath": "s3://example-bucket/data/",
        "Lifecycle": "AVAILABLE",
        "S3": {
            "AutoImportPolicy": {"Events": ["NEW", "CHANGED"]},
            "AutoExportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]},
        },
    }
    linked = LustreFileSystem(FILE_SYSTEM, MOUNT_NAME, associations=[link])
    account.file_systems[region] = [linked]
    add_network(account, region, linked)
    add_ground(account, region)


PEOPLE = ("bob", "carol", "erin", "frank")
"""User profiles of the domain, besides alice."""


def add_people(account: Account) -> None:
    """Add user profiles and spaces to the domain, for an admin to wire: one with a user number of its own, one whose space runs, a shared space."""
    for name in PEOPLE:
        account.profiles[DOMAIN, name] = Profile()
    account.profiles[DOMAIN, "dave"] = Profile(uid=210001)
    account.spaces[DOMAIN, "bobs"] = Space("bob")
    account.spaces[DOMAIN, "carols"] = Space("carol", apps=["JupyterLab"])
    account.spaces[DOMAIN, "team"] = Space("alice", sharing="Shared")


APPS, NODES, SERVERS = "sg-0a995000000000aa1", "sg-00de5000000000bb2", "sg-0f5e5000000000cc3"
"""Security groups: of the domain's applications, of the cluster's nodes, of the file system."""

INBOUND_NFS = "sg-00f5000000000dd4a"
"""The one that Studio makes for the servers of a domain's file systems."""


def add_network(account: Account, region: str, file_system: LustreFileSystem) -> None:
    """Put the domain, the clusters and the file system into a network in which they reach each other."""
    network = account.networks.setdefault(region, Network())
    clients = (APPS, NODES)
    network.add(
        SecurityGroup(APPS, "studio-applications", open_to(SERVERS, APPS)),
        SecurityGroup(NODES, "hyperpod-nodes", open_to(SERVERS, NODES)),
        SecurityGroup(SERVERS, "lustre-servers", open_to(SERVERS, *clients)),
        SecurityGroup(INBOUND_NFS, f"security-group-for-inbound-nfs-{DOMAIN}"),
        *(NetworkInterface(f"eni-{number:017x}", [SERVERS, INBOUND_NFS], f"10.0.1.{number}") for number in (1, 2)),
    )
    file_system.interfaces = list(network.interfaces)
    for cluster in account.clusters.get(region, []):
        cluster.network = {"SecurityGroupIds": [NODES], "Subnets": [SUBNET]}
    mounted = [lustre_at(FILE_SYSTEM, "/alice")]
    account.domains[DOMAIN] = Domain(
        subnets=[SUBNET, OTHER_SUBNET], groups=[APPS], shared_file_systems=[lustre_at(FILE_SYSTEM, "/team")]
    )
    account.profiles[DOMAIN, "alice"].file_systems = mounted


def add_others(account: Account, region: str) -> None:
    """Add the clusters that are there to be seen: one that grows, an old one, one that failed."""
    eks = account.add_cluster(
        "research-eks",
        region,
        orchestrator=account.eks("research", region),
        provisioning="Continuous",
        image_status="UpdateAvailable",
        settings={
            "AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "InService"},
            "TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 20},
            "ClusterRole": f"arn:aws:iam::{account.account_id}:role/HyperPodScaling",
        },
    )
    add_governance(account, region, eks)
    workers = eks.add_group("accelerated", "ml.g5.8xlarge", 6)
    workers.target, workers.status = 8, "Updating"
    old = account.add_cluster("older-cluster", region, status="SystemUpdating")
    old.add_group("workers", "ml.g5.2xlarge", 2)
    failed = account.add_cluster(
        "first-try", region, status="Failed", failure="Lifecycle scripts did not run successfully."
    )
    failed.add_group("workers", "ml.g5.xlarge", 0).target = 2
