"""A feature, and what of AWS it needs."""

from __future__ import annotations

from dataclasses import dataclass

CLUSTER = "arn:{partition}:sagemaker:{region}:{account}:cluster/*"
"""A HyperPod cluster."""

SPACE = "arn:{partition}:sagemaker:{region}:{account}:space/*"
"""A space of Studio."""

PROFILE = "arn:{partition}:sagemaker:{region}:{account}:user-profile/*"
"""A user profile of Studio."""

DOMAIN = "arn:{partition}:sagemaker:{region}:{account}:domain/*"
"""A domain of Studio."""

LIFECYCLE = "arn:{partition}:sagemaker:{region}:{account}:studio-lifecycle-config/*"
"""A lifecycle configuration of Studio."""

LOGS = "arn:{partition}:logs:{region}:{account}:log-group:/aws/sagemaker/Clusters/*"
"""The log groups of HyperPod clusters."""

LOG = f"{LOGS}:log-stream:*"
"""One log in such a group."""

EKS = "arn:{partition}:eks:{region}:{account}:cluster/*"
"""An EKS cluster."""

INTERFACE = "arn:{partition}:ec2:{region}:{account}:network-interface/*"
"""A network interface."""

GROUP = "arn:{partition}:ec2:{region}:{account}:security-group/*"
"""A security group."""

QUOTA = "arn:{partition}:sagemaker:{region}:{account}:compute-quota/*"
"""A team's quota of a HyperPod cluster."""

POLICY = "arn:{partition}:sagemaker:{region}:{account}:cluster-scheduler-config/*"
"""The policy of a HyperPod cluster's task governance."""

ADDON = "arn:{partition}:eks:{region}:{account}:addon/*"
"""An add-on of an EKS cluster."""

WORKSPACE = "arn:{partition}:aps:{region}:{account}:workspace/*"
"""A workspace of Amazon Managed Service for Prometheus."""

FSX = "arn:{partition}:fsx:{region}:{account}:*"
"""A file system of FSx and its tasks: to make a task is an action on both."""

FSX_TASK = "arn:{partition}:fsx:{region}:{account}:task/*"
"""A data repository task of FSx."""

SHELL_DOCUMENT = "arn:{partition}:ssm:{region}:{account}:document/SSM-SessionManagerRunShell"
"""The account's preferences of Session Manager, by which a terminal is opened."""

SSH_DOCUMENT = "arn:{partition}:ssm:{region}:*:document/AWS-StartSSHSession"
"""AWS' own document for ssh through Session Manager; the ARNs of such documents name no account."""

SESSION = "arn:{partition}:ssm:{region}:{account}:session/${{aws:userid}}-*"
"""Sessions of whoever asks: AWS' sample policies for Session Manager name them so."""

ROLE = "arn:{partition}:iam::{account}:role/*"
"""A role."""

SCRIPTS = "arn:{partition}:s3:::sagemaker-*"
"""A bucket with life cycle scripts: AWS' managed policy for instances knows no others."""

EVERY = "*"
"""For actions of which IAM knows nothing narrower."""


@dataclass(frozen=True)
class Permission:
    """An action that a feature calls.

    Attributes:
        action: As IAM calls it.
        resource: What it is done to: an ARN with the places ``{partition}``, ``{region}`` and ``{account}``, or `EVERY`.
        without: What is missing where it is not granted.
        optional: Whether the feature is whole without it, so that a refusal need not be said.
    """

    action: str
    resource: str
    without: str
    optional: bool = False


@dataclass(frozen=True)
class Feature:
    """Something that a user does, and what it needs.

    Attributes:
        name: A word for the command line.
        title: What it is, as a heading.
        commands: The commands that do it, or what does it in JupyterLab.
        permissions: What they call.
        changes: Whether it changes something, or lets people in where they can, so that it is granted only on purpose.
    """

    name: str
    title: str
    commands: tuple[str, ...]
    permissions: tuple[Permission, ...]
    changes: bool = False

    @property
    def for_admins(self) -> bool:
        """Whether it is for admins of domains and clusters, and nothing that people of a domain need."""
        return self.name.startswith("admin-")
