"""Steps on Studio and AWS: where this is, who this is to AWS, the space, the domain, the profile, and which clusters there are.

AWS is asked only where something here has to do with it. What it does not let us see is unknown, never a failure.
"""

from __future__ import annotations

from hyperpod_jlab.aws.studio import Studio
from hyperpod_jlab.model.check import Step, Told, fail, of_error, ok, warn
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.idle_shutdown import APPS, idle_shutdown
from hyperpod_jlab.services.doctor.at_aws import AtAws
from hyperpod_jlab.services.doctor.opened import CONFIGURATION

ROLE = "role"
"""The step on whether AWS knows who this is; whoever asks AWS needs it."""

HYPERPOD = "hyperpod"
"""The step on which HyperPod clusters there are."""

_SILENT = frozenset({"aws_failed", "aws_throttled", "aws_unreachable"})
"""Codes of errors with which it is not known who this is, though it may be somebody."""

_PASSING = frozenset({"Pending", "Updating"})
"""States of a domain in which it still works."""


class StudioLooks:
    """Looks at Studio and AWS."""

    def __init__(self, at_aws: AtAws) -> None:
        self._at = at_aws

    def steps(self) -> list[Step]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE)
        return [
            Step("studio", "studio", "metadata", self._place),
            Step(ROLE, "aws", "role", self._role),
            Step("space", "space", "domain", self._space, needs=(ROLE,)),
            Step("domain", "domain", "domain", self._domain, needs=(ROLE,)),
            Step("profile", "user profile", "domain", self._profile, needs=(ROLE,)),
            Step("idle-shutdown", "idle shutdown", "domain", self._idle, needs=(ROLE,)),
            Step(HYPERPOD, "HyperPod", "domain", self._clusters, needs=needs),
            Step("names", "names at AWS", "domain", self._names, needs=(*needs, HYPERPOD)),
        ]

    async def _place(self) -> Told:
        return _place(self._at.studio)

    async def _role(self) -> Told | None:
        if not self._at.concerned:
            return None
        try:
            caller = await self._at.caller()
        except HyperpodError as error:
            if error.code in _SILENT:
                # What the other services tell does not need this one: their endpoints may be there.
                return warn(error.message, error.hint, "admin")
            # Elsewhere runs go without AWS, and only what it knows is missing.
            return of_error(error, "unknown" if self._at.studio is None else "fail")
        words = f"{caller} in {await self._at.aws.region()}"
        studio = self._at.studio
        role = studio.role_arn.rpartition("/")[2] if studio and studio.role_arn else None
        if role is not None and f"/{role}/" not in caller:
            return warn(
                f"{words}: not the role that Studio gave this space, {role}",
                "unset AWS_PROFILE and AWS_ACCESS_KEY_ID, or mind that AWS is asked as somebody else here",
            )
        return ok(words)

    async def _space(self) -> Told | None:
        space = await self._at.space()
        if space is None:
            return None
        owner = f" of {space.owner}" if space.owner else ""
        if space.shared:
            words = "is shared: everybody in it acts as the space, and so do its runs"
            return ok(f"{space.name}{owner} {words}")
        return ok(f"{space.name} is a private space{owner}")

    async def _domain(self) -> Told | None:
        domain = await self._at.domain()
        if domain is None:
            return None
        how = {
            "VpcOnly": "VPC-only: AWS is reached through the VPC's own endpoints or NAT",
            "PublicInternetOnly": "with public internet through SageMaker's own network",
        }.get(domain.network or "", domain.network or "network unknown")
        words = f"{domain.name}, {how}; in {domain.vpc}, subnets {', '.join(domain.subnets)}"
        if domain.groups:
            words += f", security groups {', '.join(domain.groups)}"
        if domain.status == "InService":
            return ok(words)
        if domain.status in _PASSING:
            return warn(f"{words}; it is {domain.status}", "wait until it is InService", "admin")
        problem = f": {domain.problem}" if domain.problem else ""
        return fail(
            f"{words}; it is {domain.status}{problem}",
            "look at it in SageMaker's console under Domains",
            "admin",
        )

    async def _profile(self) -> Told | None:
        profile = await self._at.profile()
        if profile is None:
            return None
        number = f"user number {profile.uid}" if profile.uid else "the user number of all profiles"
        folders = ", ".join(f"{name} (its {folder})" for name, folder in profile.file_systems)
        words = f"{profile.name}, {number} on file systems"
        return ok(f"{words}; may mount {folders}" if folders else words)

    async def _idle(self) -> Told | None:
        studio = self._at.studio
        if studio is None or studio.app_type not in APPS:
            return None
        app = studio.app_type
        space, domain = await self._at.space(), await self._at.domain()
        if domain is None:
            return None
        said = [space.idle.get(app) if space else None]
        if space is not None and space.shared:
            said.append(domain.shared_idle.get(app))
        else:
            profile = await self._at.profile()
            said += [profile.idle.get(app) if profile else None, domain.idle.get(app)]
        holds = idle_shutdown(said)
        if not holds.on:
            return ok(f"Studio does not stop {app} when it is idle")
        after = f"{holds.minutes} minutes" if holds.minutes else "a while"
        return warn(
            f"Studio stops {app} after {after} without activity, and runs of the cluster local end with it; runs on other clusters go on",
            "send long runs to a cluster that is not local",
        )

    async def _clusters(self) -> Told | None:
        if not self._at.concerned:
            return None
        found = await self._at.clusters()
        words = f"{len(found)} clusters in {await self._at.aws.region()}"
        if found:
            words += ": " + ", ".join(map(_words, found))
        words = "; ".join([words, *found.notes])
        return warn(words) if found.notes else ok(words)

    async def _names(self) -> Told | None:
        named = list(self._at.named.values())
        if not named:
            return None
        found = await self._at.clusters()
        there = {text for cluster in found for text in (cluster.name, cluster.arn)}
        missing = [name for name in named if name not in there]
        region = await self._at.aws.region()
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


def _words(cluster: HyperpodCluster) -> str:
    """Such as ``ml-cluster (slurm, in-service, its file system is here)``."""
    parts = [cluster.orchestrator or "orchestrator unknown", cluster.state]
    if cluster.mounted_here is not None:
        parts.append(f"its file system is {'' if cluster.mounted_here else 'not '}mounted here")
    return f"{cluster.name} ({', '.join(parts)})"
