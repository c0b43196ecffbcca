"""What of AWS each feature needs, and the smallest policy that grants it.

One table, `FEATURES`: docs/permissions.md, ``hpj admin policy`` and the test that runs every feature under exactly its policy are made
from it. Who adds a call of AWS adds its action here, and how to run it to tests/aws/feature_runs.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint

CLUSTER = "arn:{partition}:sagemaker:{region}:{account}:cluster/*"
"""A HyperPod cluster."""

SPACE = "arn:{partition}:sagemaker:{region}:{account}:space/*"
"""A space of Studio."""

PROFILE = "arn:{partition}:sagemaker:{region}:{account}:user-profile/*"
"""A user profile of Studio."""

LOGS = "arn:{partition}:logs:{region}:{account}:log-group:/aws/sagemaker/Clusters/*"
"""The log groups of HyperPod clusters."""

LOG = f"{LOGS}:log-stream:*"
"""One log in such a group."""

EKS = "arn:{partition}:eks:{region}:{account}:cluster/*"
"""An EKS cluster."""

FSX = "arn:{partition}:fsx:{region}:{account}:*"
"""A file system of FSx and its tasks: to make a task is an action on both."""

FSX_TASK = "arn:{partition}:fsx:{region}:{account}:task/*"
"""A data repository task of FSx."""

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


FEATURES: tuple[Feature, ...] = (
    Feature(
        "clusters",
        "HyperPod clusters",
        ("hpj clusters --hyperpod", "hpj doctor"),
        (
            Permission("sagemaker:ListClusters", EVERY, "no list of clusters"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "clusters are listed without orchestrator, instance groups and file systems",
            ),
        ),
    ),
    Feature(
        "nodes",
        "Nodes of a HyperPod cluster",
        ("hpj nodes --hyperpod NAME",),
        (
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no nodes"),
            Permission(
                "sagemaker:DescribeCluster", CLUSTER, "it is not known which nodes are controllers"
            ),
        ),
    ),
    Feature(
        "space",
        "Whose a space of Studio is",
        ("hpj doctor",),
        (
            Permission(
                "sagemaker:DescribeSpace",
                SPACE,
                "it is not known whose a space is, and whether it is shared",
            ),
        ),
    ),
    Feature(
        "events",
        "Events of a HyperPod cluster",
        ("hpj events --hyperpod NAME",),
        (
            Permission("sagemaker:ListClusterEvents", CLUSTER, "no events"),
            Permission("sagemaker:DescribeClusterEvent", CLUSTER, "no details of an event"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "nothing; of a cluster that keeps no events it is said in AWS' words",
                optional=True,
            ),
        ),
    ),
    Feature(
        "logs",
        "Logs of nodes",
        ("hpj node-logs --hyperpod NAME",),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no logs: they are named by its id"),
            Permission(
                "sagemaker:ListClusterNodes",
                CLUSTER,
                "no logs of a node, but those that --stream names",
            ),
            Permission(
                "logs:DescribeLogStreams",
                LOGS,
                "no list of logs, and none of nodes that were replaced",
            ),
            Permission("logs:GetLogEvents", LOG, "no lines"),
        ),
    ),
    Feature(
        "metrics",
        "Metrics of clusters and nodes",
        ("hpj metrics --hyperpod NAME",),
        (
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "no metrics: they have its id or its EKS cluster",
            ),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "none of one node"),
            Permission("cloudwatch:GetMetricData", EVERY, "no metrics"),
            Permission("cloudwatch:ListMetrics", EVERY, "none of single nodes"),
        ),
    ),
    Feature(
        "storage",
        "File systems and partitions",
        ("hpj storage",),
        (
            Permission("fsx:DescribeFileSystems", EVERY, "nothing of what FSx knows of them"),
            Permission(
                "fsx:DescribeDataRepositoryAssociations", EVERY, "links to S3 are not known"
            ),
            Permission(
                "sagemaker:DescribeSpace",
                SPACE,
                "whether it is shared is known by Studio's environment only",
            ),
            Permission(
                "sagemaker:DescribeUserProfile", PROFILE, "the user number is taken for everybody's"
            ),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "it is not known whether clusters of the configuration mount the file system",
            ),
        ),
    ),
    Feature(
        "storage-tasks",
        "Files of file systems that are linked to S3, by AWS",
        ("hpj storage export --by aws", "hpj storage import", "hpj storage tasks"),
        (
            Permission("fsx:CreateDataRepositoryTask", FSX, "no export, import or release"),
            Permission("fsx:DescribeDataRepositoryTasks", EVERY, "no list of tasks"),
            Permission("fsx:CancelDataRepositoryTask", FSX_TASK, "a task cannot be cancelled"),
            Permission(
                "fsx:DescribeFileSystems",
                EVERY,
                "nothing where the mount names the file system, as Studio's does",
                optional=True,
            ),
            Permission(
                "fsx:DescribeDataRepositoryAssociations",
                EVERY,
                "no import; of what is not linked AWS says so, later",
            ),
        ),
        changes=True,
    ),
    Feature(
        "node-actions",
        "Reboot and replace nodes",
        ("hpj node reboot", "hpj node replace"),
        (
            Permission("sagemaker:BatchRebootClusterNodes", CLUSTER, "no reboot"),
            Permission("sagemaker:BatchReplaceClusterNodes", CLUSTER, "no replacement"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "nodes cannot be found"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "it is not known beforehand which nodes are controllers",
            ),
        ),
        changes=True,
    ),
    Feature(
        "terminal",
        "A terminal on a node",
        ("hpj terminal --hyperpod NAME",),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no command: it has the cluster's id"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no command: the node is not found"),
            # The service authorization reference names no cluster of SageMaker here; Systems Manager is asked for one.
            Permission("ssm:StartSession", CLUSTER, "the command opens no terminal"),
        ),
        changes=True,
    ),
    Feature(
        "page",
        "The page of a HyperPod cluster",
        ("the page in JupyterLab",),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no page"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no nodes"),
            Permission("sagemaker:ListTags", CLUSTER, "no tags"),
        ),
    ),
    Feature(
        "eks",
        "Kubernetes clusters by their names in EKS",
        ("hpj nodes --cluster NAME",),
        (
            Permission(
                "eks:DescribeCluster",
                EKS,
                'no way to a cluster that the configuration names with eks = "NAME"',
            ),
        ),
    ),
)
"""All features that call AWS."""


def choose(names: Sequence[str], features: Sequence[Feature] = FEATURES) -> list[Feature]:
    """Features by their names.

    Args:
        names: The names; none: all features that change nothing.
        features: The features to choose from.

    Raises:
        InvalidInputError: There is no feature of a name.
    """
    if not names:
        return [feature for feature in features if not feature.changes]
    known = {feature.name: feature for feature in features}
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"there is no feature '{name[:60]}'",
                hint=nearest_hint(name, known) or f"there are: {', '.join(known)}",
                detail={"field": "features"},
            )
    return [known[name] for name in names]


def policy(
    features: Iterable[Feature], partition: str = "aws", region: str = "*", account: str = "*"
) -> dict[str, Any]:
    """The smallest IAM policy with which features work: one statement for each kind of resource.

    Args:
        features: The features.
        partition: ``aws``, ``aws-cn`` or ``aws-us-gov``.
        region: A region, or a star for all.
        account: The account's twelve digits, or a star for all.
    """
    granted: dict[str, set[str]] = {}
    for feature in features:
        for one in feature.permissions:
            where = one.resource.format(partition=partition, region=region, account=account)
            granted.setdefault(where, set()).add(one.action)
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": sorted(actions), "Resource": resource}
            for resource, actions in sorted(granted.items())
        ],
    }
