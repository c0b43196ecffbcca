"""Steps on Studio and AWS: where this is, which file systems are mounted, who this is to AWS, which clusters there are.

AWS is asked only where something here has to do with it: in Studio, or with a cluster that the configuration names by its name at AWS.
"""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.aws.lustre import LustreMount, lustre_mounts
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.spaces import describe_space
from hyperpod_jlab.aws.studio import Studio, find_studio
from hyperpod_jlab.model.check import Told, ok, warn
from hyperpod_jlab.model.config import KubernetesCluster, LocalCluster, Settings
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.services.doctor.chain import Step
from hyperpod_jlab.services.doctor.opened import CONFIGURATION, Opened
from hyperpod_jlab.services.hyperpod_clusters import HyperpodClusters

ROLE = "role"
"""The step on whether AWS knows who this is; whoever asks AWS needs it."""


class StudioLooks:
    """What Studio and AWS tell, kept from one step to the next."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._studio = find_studio()
        self._mounts = lustre_mounts()
        self._aws = Aws()
        self._found: Sequence[HyperpodCluster] = ()

    def steps(self) -> list[Step]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE)
        return [
            Step("studio", "studio", "metadata", self._place),
            Step(ROLE, "aws", "role", self._role),
            Step("space", "space", "domain", self._space, needs=(ROLE,)),
            Step("hyperpod", "HyperPod", "domain", self._clusters, needs=needs),
            Step("names", "names at AWS", "domain", self._names, needs=(*needs, "hyperpod")),
            Step("mount", "FSx for Lustre", "mount", self._file_systems),
        ]

    @property
    def _asks(self) -> bool:
        """Whether anything here has to do with AWS."""
        return self._studio is not None or self._named_at_aws

    @property
    def _named_at_aws(self) -> bool:
        if not self._opened.is_open:
            return False
        settings = self._opened.hyperpod.settings
        return bool(_hyperpod_names(settings)) or _names_eks(settings)

    async def _place(self) -> Told:
        return _place(self._studio)

    async def _file_systems(self) -> Told | None:
        if self._studio is None and not self._mounts:
            return None
        return _mounts(self._mounts)

    async def _role(self) -> Told | None:
        if not self._asks:
            return None
        who = await self._aws.call("sts", "GetCallerIdentity")
        return ok(f"{who['Arn']} in {await self._aws.region()}")

    async def _space(self) -> Told | None:
        studio = self._studio
        if studio is None or not studio.domain_id or not studio.space:
            return None
        space = await describe_space(self._aws, studio.domain_id, studio.space)
        owner = f" of {space.owner}" if space.owner else ""
        if space.shared:
            words = "is shared: everybody in it acts as the space, and so do its runs"
            return ok(f"{space.name}{owner} {words}")
        return ok(f"{space.name} is a private space{owner}")

    async def _clusters(self) -> Told | None:
        if not self._asks:
            return None
        service = HyperpodClusters(self._opened.hyperpod.settings, self._aws, self._mounts)
        found = await service.clusters()
        self._found = tuple(found)
        words = f"{len(found)} clusters in {await self._aws.region()}"
        if found:
            words += ": " + ", ".join(map(_words, found))
        words = "; ".join([words, *found.notes])
        return warn(words) if found.notes else ok(words)

    async def _names(self) -> Told | None:
        named = _hyperpod_names(self._opened.hyperpod.settings)
        if not named:
            return None
        there = {text for cluster in self._found for text in (cluster.name, cluster.arn)}
        missing = [name for name in named if name not in there]
        region = await self._aws.region()
        if missing:
            words = f"the configuration names {', '.join(missing)}, which is not in {region}"
            return warn(words, "see: hpj clusters --hyperpod")
        return ok(f"{', '.join(named)}: in {region}")


def _place(studio: Studio | None) -> Told:
    if studio is None:
        return ok("this is not SageMaker Studio")
    if studio.problems:
        fix = "restart the space; Studio writes its metadata when it starts"
        return warn("; ".join(studio.problems), fix)
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
    return ok(f"{studio.app_type or 'an application'} in " + ", ".join(parts))


def _mounts(mounts: Sequence[LustreMount]) -> Told:
    if not mounts:
        return warn(
            "no file system is mounted here, so runs cannot share one with a cluster",
            "add it to the space's custom file systems; it is there after a restart",
            "admin",
        )
    words = ", ".join(
        f"{mount.file_system or mount.mount_name} at {mount.point} (its {mount.folder})"
        for mount in mounts
    )
    closed = [str(mount.point) for mount in mounts if mount.read_only]
    if closed:
        return warn(f"{words}; only to be read: {', '.join(closed)}")
    return ok(words)


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
