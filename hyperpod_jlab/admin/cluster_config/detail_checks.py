"""What single members of a configuration mean, as far as nobody at AWS has to be asked: pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hyperpod_jlab.admin.cluster_config.config import ClusterConfig, Group, Provisioning
from hyperpod_jlab.admin.cluster_config.group_checks import PROVISIONING
from hyperpod_jlab.admin.cluster_config.storage_checks import file_system_of, mounts
from hyperpod_jlab.admin.cluster_config.verdict import Verdict, doubtful, wrong

BUCKETS = "s3://sagemaker-"
"""How the addresses begin that instances may read by AmazonSageMakerClusterInstanceRolePolicy; others a role may be given, too."""

MOST_VOLUMES = 2
"""The root volume and one more (ClusterEbsVolumeConfig)."""

_EFS = re.compile(r"fs-[0-9a-f]+\.efs\.")
_EKS_ARN = re.compile(
    r"arn:[a-z0-9-]+:eks:(?P<region>[a-z0-9-]+):(?P<account>\d{12}):cluster/(?P<name>.+)"
)


def detail_checks(
    config: ClusterConfig, provisioning: Provisioning | None, region: str | None
) -> Iterator[Verdict]:
    """All of them.

    Args:
        config: The first file.
        provisioning: The second one; None: there is none.
        region: The region in which the cluster is to be; None: not known.
    """
    for group in config.groups:
        if not group.restricted:
            yield from _scripts(group, config)
        yield from _types(group)
        yield from _volumes(group)
        yield from _lustre(group)
    yield from _both_files(config, provisioning)
    yield from _network(config)
    yield from _mounts(config, provisioning)
    yield from _eks(config, region)


def _scripts(group: Group, config: ClusterConfig) -> Iterator[Verdict]:
    at = f"{group.path}.LifeCycleConfig"
    if group.script_folder is None and group.script is None:
        if not (config.orchestrator == "slurm" and group.slurm_role):
            yield doubtful(
                "scripts",
                f"{group.words} has no life cycle scripts",
                at,
                "AWS sets such instances up by their image alone",
            )
        return
    if group.script_folder is None or group.script is None:
        missing = "SourceS3Uri" if group.script_folder is None else "OnCreate"
        yield wrong(
            "scripts", f"{group.words} has life cycle scripts without {missing}", f"{at}.{missing}"
        )
    if group.script_folder is not None and not group.script_folder.startswith(BUCKETS):
        yield doubtful(
            "scripts",
            f"{group.script_folder[:80]} does not begin with {BUCKETS}",
            f"{at}.SourceS3Uri",
            "AmazonSageMakerClusterInstanceRolePolicy lets instances read only such buckets: let their role read this one too",
        )
    if group.script is not None and group.script.startswith(("/", "s3:")):
        yield wrong(
            "scripts",
            f"OnCreate is the script's name below SourceS3Uri, not {group.script[:60]}",
            f"{at}.OnCreate",
        )


def _types(group: Group) -> Iterator[Verdict]:
    if not group.types:
        yield wrong("capacity", f"{group.words} has no instance type", f"{group.path}.InstanceType")
    for name in group.types:
        if not name.startswith("ml."):
            yield wrong(
                "capacity",
                f"{name[:40]} is a name of EC2",
                f"{group.path}.InstanceType",
                f"did you mean ml.{name[:40]}?",
            )


def _volumes(group: Group) -> Iterator[Verdict]:
    at = f"{group.path}.InstanceStorageConfigs"
    if len(group.volumes) > MOST_VOLUMES:
        yield wrong(
            "storage",
            f"{group.words} has {len(group.volumes)} volumes; {MOST_VOLUMES} are allowed",
            at,
        )
    roots = [one for one in group.volumes if one.get("RootVolume") is True]
    others = [one for one in group.volumes if one.get("RootVolume") is not True]
    for same, words in ((roots, "root volumes"), (others, "further volumes")):
        if len(same) > 1:
            yield wrong("storage", f"{group.words} has {len(same)} {words}; one is allowed", at)
    for one in roots:
        if "VolumeSizeInGB" in one:
            yield wrong(
                "storage",
                f"{group.words}: the size of the root volume is AWS' own",
                at,
                "leave VolumeSizeInGB out",
            )
        if "VolumeKmsKeyId" not in one:
            yield wrong(
                "storage",
                f"{group.words}: a root volume is named for its key alone, and has none",
                at,
                "give VolumeKmsKeyId, or leave it out",
            )
    for one in others:
        if "VolumeSizeInGB" not in one:
            yield wrong("storage", f"{group.words}: a volume has no VolumeSizeInGB", at)


def _lustre(group: Group) -> Iterator[Verdict]:
    seen = set[str | None]()
    for one in group.lustre:
        if one.mount_path in seen:
            yield wrong(
                "storage", f"{group.words} mounts two file systems at the same place", one.path
            )
        seen.add(one.mount_path)


def _both_files(config: ClusterConfig, second: Provisioning | None) -> Iterator[Verdict]:
    """Both files may name a file system, for the scripts and for HyperPod itself: they are to mean the same."""
    if second is None:
        return
    if (second.dns_name is None) != (second.mount_name is None):
        missing = "fsx_mountname" if second.mount_name is None else "fsx_dns_name"
        yield wrong(
            "storage",
            f"{missing} is missing, and its counterpart is there",
            f"{PROVISIONING}: {missing}",
        )
    if second.dns_name is None:
        return
    for group in config.groups:
        for one in group.lustre:
            if (
                one.dns_name
                and one.dns_name != second.dns_name
                and one.mount_path in {None, "/fsx"}
            ):
                yield wrong(
                    "storage",
                    f"{group.words} mounts {one.dns_name}, and {PROVISIONING} {second.dns_name}, both at /fsx",
                    one.path,
                )


def _network(config: ClusterConfig) -> Iterator[Verdict]:
    if config.orchestrator == "eks" and not config.subnets:
        yield wrong(
            "network",
            "a cluster on EKS needs VpcConfig: its nodes are in the EKS cluster's VPC",
            "VpcConfig",
        )
    elif not config.subnets:
        words = "the cluster names no subnets, so it comes into a network of SageMaker's own"
        yield doubtful("network", words, "VpcConfig", "with VpcConfig it reaches your file systems")


def _mounts(config: ClusterConfig, second: Provisioning | None) -> Iterator[Verdict]:
    for mount, groups in mounts(config, second):
        name = mount.dns_name
        if name is None:
            continue  # the schema's to complain about
        if not all(map(config.subnets_of, groups)):
            yield wrong(
                "storage",
                f"{name[:80]} is not reached from SageMaker's own network, and the cluster names no subnets",
                mount.path,
                "give VpcConfig",
            )
        if _EFS.match(name):
            words = f"'{name[:80]}' is a file system of EFS, and what is mounted is Lustre"
            yield wrong("storage", words, mount.path, "name one of FSx for Lustre")
        elif file_system_of(name) is None:
            words = f"'{name[:80]}' is no DNS name of a file system of FSx"
            yield doubtful("storage", words, mount.path)


def _eks(config: ClusterConfig, region: str | None) -> Iterator[Verdict]:
    if config.orchestrator != "eks" or config.eks_arn is None:
        return
    found = _EKS_ARN.fullmatch(config.eks_arn)
    if found is None:
        yield wrong(
            "eks",
            f"'{config.eks_arn[:80]}' is no ARN of an EKS cluster",
            "Orchestrator.Eks.ClusterArn",
        )
    elif region is not None and found["region"] != region:
        yield wrong(
            "eks",
            f"the EKS cluster is in {found['region']}, and the HyperPod cluster is to be in {region}",
            "Orchestrator.Eks.ClusterArn",
        )
