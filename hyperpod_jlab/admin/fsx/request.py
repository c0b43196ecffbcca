"""What an admin asks for: the domain, the file system, the desired state, and who provisions folders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from hyperpod_jlab.admin.fsx.aws import ProfileSubset
from hyperpod_jlab.admin.fsx.models import DesiredState
from hyperpod_jlab.admin.lifecycle.models import LifecycleFile
from hyperpod_jlab.core.config import SchedulerName

ProvisionerKind = Literal["here", SchedulerName, "none"]
"""The provisioner: this machine, jobs of a cluster, or none."""

_Text = Annotated[str | None, Field(min_length=1, max_length=256)]


@dataclass(frozen=True)
class ProvisionerOptions:
    """The folder provisioner and its options.

    Attributes:
        by: This machine, a job of a Slurm cluster, a Job of a Kubernetes cluster, or none.
        mounted_at: Where the whole file system is mounted: on this machine, or on the nodes of Slurm (default there: /fsx).
        cluster: The cluster: its name in the configuration, or the HyperPod cluster behind it; None: the only one of its kind.
        queue: The Slurm partition of the jobs.
        namespace: The namespace of the claim; default: the configured one.
        claim: The claim of the whole file system; default: the configured one.
        image: The pods' image by its digest; default: the configured one.
        user: The user of the cluster's jobs, by uid or name, who gets access to the folders; ``none`` for no user; None: users with access keep it.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    by: ProvisionerKind = "none"
    mounted_at: Annotated[str | None, Field(min_length=1, max_length=4096)] = None
    cluster: _Text = None
    queue: _Text = None
    namespace: _Text = None
    claim: _Text = None
    image: Annotated[str | None, Field(min_length=1, max_length=1024)] = None
    user: _Text = None


@dataclass(frozen=True)
class StorageRequest:
    """A request, the same for the command line, the page and stacks.

    Attributes:
        domain: The domain's id.
        wanted: The desired state.
        cluster: The HyperPod cluster whose file system to use; None: `file_system` names it.
        file_system: The file system's id; None: the one that the cluster mounts.
        region: The domain's region; None: see `aws.session.Aws`.
        folders: Who provisions folders.
        lifecycle: The desired lifecycle configurations; None: unchanged.
        subset: Only these are read, and planned by the rules for all, without the steps that affect all users; None: all.
        may_be_missing: Whether the file system may have been deleted.
        in_force: Whether the mode in force is planned instead of the desired one.
    """

    domain: str
    wanted: DesiredState
    cluster: str | None = None
    file_system: str | None = None
    region: str | None = None
    folders: ProvisionerOptions = field(default_factory=ProvisionerOptions)
    lifecycle: LifecycleFile | None = None
    subset: ProfileSubset | None = None
    may_be_missing: bool = False
    in_force: bool = False
