"""Checks of Studio and AWS: where this is, which file systems are mounted, who this is to AWS, which clusters there are.

AWS is asked only where something here has to do with it: in Studio, or with a cluster that the configuration names by its name at AWS.
"""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.aws.lustre import LustreMount, lustre_mounts
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.spaces import describe_space
from hyperpod_jlab.aws.studio import Studio, find_studio
from hyperpod_jlab.model.config import KubernetesCluster, LocalCluster, Settings
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.services.checks import Check, of_error
from hyperpod_jlab.services.hyperpod_clusters import HyperpodClusters


async def aws_checks(settings: Settings) -> list[Check]:
    """The checks, in the order in which things build on each other."""
    studio, mounts = find_studio(), lustre_mounts()
    checks = [_place(studio)]
    if studio is not None or mounts:
        checks.append(_mounts(mounts))
    named = _hyperpod_names(settings)
    if studio is None and not named and not _names_eks(settings):
        return checks
    aws = Aws()
    try:
        who = await aws.call("sts", "GetCallerIdentity")
    except HyperpodError as error:
        return [*checks, of_error("aws", error, "warn")]
    checks.append(Check("aws", "ok", f"{who['Arn']} in {await aws.region()}"))
    if studio is not None and studio.domain_id and studio.space:
        checks.append(await _space(aws, studio.domain_id, studio.space))
    return [*checks, *await _clusters(HyperpodClusters(settings, aws, mounts), named)]


def _place(studio: Studio | None) -> Check:
    name = "studio"
    if studio is None:
        return Check(name, "ok", "this is not SageMaker Studio")
    if studio.problems:
        hint = "restart the space; Studio writes its metadata when it starts"
        return Check(name, "warn", "; ".join(studio.problems), hint)
    parts = [
        f"{word} {value}"
        for word, value in (
            ("domain", studio.domain_id),
            ("user profile", studio.user_profile),
            ("space", studio.space),
            ("role", studio.role_arn),
        )
        if value
    ]
    return Check(name, "ok", f"{studio.app_type or 'an application'} in " + ", ".join(parts))


async def _space(aws: Aws, domain_id: str, name: str) -> Check:
    try:
        space = await describe_space(aws, domain_id, name)
    except HyperpodError as error:
        return of_error("space", error, "warn")
    owner = f" of {space.owner}" if space.owner else ""
    if space.shared:
        words = f"{name}{owner} is shared: everybody in it acts as the space, and so do its runs"
        return Check("space", "ok", words)
    return Check("space", "ok", f"{name} is a private space{owner}")


def _mounts(mounts: Sequence[LustreMount]) -> Check:
    name = "FSx for Lustre"
    if not mounts:
        return Check(
            name,
            "warn",
            "no file system is mounted here, so runs cannot share one with a cluster",
            "whoever manages the domain can add it to the space's custom file systems; it is there after a restart",
        )
    words = ", ".join(
        f"{mount.file_system or mount.mount_name} at {mount.point} (its {mount.folder})"
        for mount in mounts
    )
    closed = [str(mount.point) for mount in mounts if mount.read_only]
    if closed:
        return Check(name, "warn", f"{words}; only to be read: {', '.join(closed)}")
    return Check(name, "ok", words)


async def _clusters(service: HyperpodClusters, named: Sequence[str]) -> list[Check]:
    name = "HyperPod"
    try:
        found = await service.clusters()
    except HyperpodError as error:
        return [of_error(name, error, "warn")]
    region = await service.aws.region()
    words = f"{len(found)} clusters in {region}"
    if found:
        words += ": " + ", ".join(map(_words, found))
    checks = [Check(name, "warn" if found.notes else "ok", "; ".join([words, *found.notes]))]
    there = {text for cluster in found for text in (cluster.name, cluster.arn)}
    checks += [
        Check(
            name,
            "warn",
            f"the configuration names {missing}, which is not in {region}",
            "see: hpj clusters --hyperpod",
        )
        for missing in named
        if missing not in there
    ]
    return checks


def _words(cluster: HyperpodCluster) -> str:
    """Such as ``ml-cluster (slurm, in-service, its file system is here)``."""
    parts = [cluster.orchestrator or "orchestrator unknown", cluster.state]
    if cluster.mounted_here is not None:
        parts.append(f"its file system is {'' if cluster.mounted_here else 'not '}mounted here")
    return f"{cluster.name} ({', '.join(parts)})"


def _hyperpod_names(settings: Settings) -> list[str]:
    """The HyperPod clusters that the configuration names."""
    return [
        config.hyperpod
        for config in settings.clusters.values()
        if not isinstance(config, LocalCluster) and config.hyperpod is not None
    ]


def _names_eks(settings: Settings) -> bool:
    return any(
        isinstance(config, KubernetesCluster) and config.eks is not None
        for config in settings.clusters.values()
    )
