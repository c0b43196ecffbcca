"""Deleting what was made to verify facts, in this run or in one that was killed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.admin.patience import PatientAws, is_in_use
from hyperpod_jlab.admin.there import PASSING
from hyperpod_jlab.admin.verify.journal import Journal
from hyperpod_jlab.admin.verify.throw_away import PREFIX, TAG, Tell, looks, to_its_end
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError, NotFoundError, RefusedError

YOUNG = 3600.0
"""Seconds for which what another machine has made is left alone: its run may be under way."""

_DELETING = "Deleting"

_RULES = (
    ("RevokeSecurityGroupIngress", "IpPermissions"),
    ("RevokeSecurityGroupEgress", "IpPermissionsEgress"),
)
"""What takes the rules of a security group away, and where they stand in its description."""


@dataclass(frozen=True)
class Left:
    """What is there of a run.

    Attributes:
        name: The name of all of it.
        domains: Ids of its domains.
        gone: Ids of domains that may be gone, of which security groups may be left.
        script: Whether its lifecycle configuration is there.
        age: Seconds since it was made; None: a note of this machine says that its run is over.
    """

    name: str
    domains: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    script: bool = False
    age: float | None = None

    @property
    def may_be_in_use(self) -> bool:
        """Whether a run on another machine may be using it."""
        return self.age is not None and self.age < YOUNG

    @property
    def words(self) -> str:
        """What it is, for people."""
        parts = [f"the domain {one}" for one in self.domains]
        parts += ["its lifecycle configuration"] if self.script else []
        parts = parts or [f"security groups of the domain {one}" for one in self.gone]
        since = "" if self.age is None else f", made {self.age / 60:.0f} min ago"
        return f"{self.name} ({', '.join(parts) or 'nothing any more'}{since})"


class CleanUp:
    """Finds and deletes what was made; nothing else.

    Args:
        aws: AWS, as the caller.
        journal: The notes of this machine.
        tell: Says what is deleted, before it is.
    """

    def __init__(self, aws: Aws, journal: Journal, tell: Tell) -> None:
        self._aws = PatientAws(aws)
        self._journal = journal
        self._tell = tell

    async def left(self) -> list[Left]:
        """What runs have left that are over; of runs on other machines that is not known, see `Left.age`.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        notes = {one.name: one for one in self._journal.left()}
        found: dict[str, Left] = {
            name: Left(name, gone=note.domains) for name, note in notes.items()
        }
        domains, scripts = await self._domains(), await self._scripts()
        for name in (domains.keys() | scripts.keys()) - found.keys():
            if self._journal.lives(name):
                continue
            made = [*domains.get(name, {}).values(), *scripts.get(name, {}).values()]
            found[name] = Left(name, age=time.time() - min(made))
        return [
            Left(name, tuple(domains.get(name, ())), one.gone, name in scripts, one.age)
            for name, one in sorted(found.items())
        ]

    async def delete(self, one: Left) -> None:
        """Delete all of it.

        Raises:
            RefusedError: Something else is in a domain, which stays then.
            HyperpodError: See `aws.errors`.
        """
        try:
            await self._delete_all(one)
            self._journal.end(one.name)
        finally:
            self._journal.release(one.name)

    async def _delete_all(self, one: Left) -> None:
        domains = (await self._domains()).get(one.name, {})
        for domain in domains:
            await self._delete_domain(one.name, domain)
        if one.name in await self._scripts():
            self._tell(f"delete the lifecycle configuration {one.name}")
            await self._call("DeleteStudioLifecycleConfig", StudioLifecycleConfigName=one.name)
        for domain in {*one.gone, *one.domains, *domains}:
            await self._delete_groups(domain)

    async def _domains(self) -> dict[str, dict[str, float]]:
        """Ids and times of the domains that are ours, by name."""
        found: dict[str, dict[str, float]] = {}
        for one in await self._aws.listed("sagemaker", "ListDomains", "Domains"):
            name = str(one["DomainName"])
            if name.startswith(PREFIX) and await self._is_ours(name, str(one["DomainArn"])):
                made = one["CreationTime"].timestamp()
                found.setdefault(name, {})[str(one["DomainId"])] = made
        return found

    async def _scripts(self) -> dict[str, dict[str, float]]:
        """ARNs and times of the lifecycle configurations that are ours, by name."""
        found: dict[str, dict[str, float]] = {}
        operation, member = "ListStudioLifecycleConfigs", "StudioLifecycleConfigs"
        for one in await self._aws.listed("sagemaker", operation, member, NameContains=TAG):
            name, arn = str(one["StudioLifecycleConfigName"]), str(one["StudioLifecycleConfigArn"])
            if name.startswith(PREFIX) and await self._is_ours(name, arn):
                found[name] = {arn: one["CreationTime"].timestamp()}
        return found

    async def _is_ours(self, name: str, arn: str) -> bool:
        try:
            return (await self._aws.tags(arn)).get(TAG) == name
        except (NotFoundError, InvalidInputError):
            return False  # it went away meanwhile

    async def _delete_domain(self, name: str, domain: str) -> None:
        inside = {"DomainIdEquals": domain}
        spaces = await self._aws.listed("sagemaker", "ListSpaces", "Spaces", **inside)
        profiles = await self._aws.listed("sagemaker", "ListUserProfiles", "UserProfiles", **inside)
        names = [one["SpaceName"] for one in spaces] + [one["UserProfileName"] for one in profiles]
        others = sorted(set(map(str, names)) - {name})
        if others:
            raise RefusedError(
                f"the domain {domain} has {', '.join(others[:5])}, which this command did not make",
                code="not_ours",
                hint="delete that, then run: hpj admin verify-aws --clean-up",
            )
        if spaces:
            await self._delete(
                *("DescribeSpace", "DeleteSpace"),
                f"the space {name}",
                DomainId=domain,
                SpaceName=name,
            )
        if profiles:
            await self._delete(
                *("DescribeUserProfile", "DeleteUserProfile"),
                f"the user profile {name}",
                DomainId=domain,
                UserProfileName=name,
            )
        retention = {"RetentionPolicy": {"HomeEfsFileSystem": "Delete"}}
        await self._delete(
            *("DescribeDomain", "DeleteDomain"),
            f"the domain {domain} with its EFS file system",
            retention,
            DomainId=domain,
        )

    async def _delete(
        self,
        describe: str,
        delete: str,
        words: str,
        more: Mapping[str, Any] | None = None,
        **named: str,
    ) -> None:
        """Delete something, and wait until it is gone."""
        told_of = False
        async for _ in looks(words):
            try:
                status = (await self._call(describe, **named))["Status"]
            except NotFoundError:
                return
            if status in PASSING or status == _DELETING:
                continue
            if not told_of:
                self._tell(f"delete {words}")
                told_of = True
            try:
                await to_its_end(self._call(delete, **named, **(more or {})))
            except NotFoundError:
                return
            except HyperpodError as error:
                if not is_in_use(error):
                    raise

    async def _delete_groups(self, domain: str) -> None:
        """Delete the security groups that SageMaker made for a domain, and leaves when it is deleted; they name each other."""
        names = [f"security-group-for-{way}-nfs-{domain}" for way in ("inbound", "outbound")]
        wanted = [{"Name": "group-name", "Values": names}]
        told = await self._aws.call("ec2", "DescribeSecurityGroups", Filters=wanted)
        groups = told.get("SecurityGroups") or ()
        for one in groups:
            ident = str(one["GroupId"])
            self._tell(f"empty the security group {ident} ({one['GroupName']})")
            for revoke, member in _RULES:
                if one.get(member):
                    given = {"GroupId": ident, "IpPermissions": one[member]}
                    await self._aws.call("ec2", revoke, **given)
        for one in groups:
            self._tell(f"delete the security group {one['GroupId']}")
            async for _ in looks(f"security group {one['GroupId']}"):
                if await self._group_is_gone(str(one["GroupId"])):
                    break

    async def _group_is_gone(self, ident: str) -> bool:
        """Delete a security group; False while the file system's interfaces still have it."""
        try:
            await self._aws.call("ec2", "DeleteSecurityGroup", GroupId=ident)
        except NotFoundError:
            return True
        except HyperpodError as error:
            if (error.detail or {}).get("aws_code") != "DependencyViolation":
                raise
            return False
        return True

    async def _call(self, operation: str, **given: Any) -> dict[str, Any]:
        return await self._aws.call("sagemaker", operation, **given)
