"""The AWS permissions of each feature: one table that generates docs/permissions.md, ``hpj admin policy`` and the tests.

When you add a call of AWS, add its action here, and how to run it to tests/aws/feature_runs.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError, nearest_hint

# --------------------------------------------------------------------------------------------------
# Features and their AWS permissions.

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

OUR_LIFECYCLE = LIFECYCLE.replace("/*", "/hyperpod-jlab-*")
"""One that `hpj admin` has made."""

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

TRACKING_SERVER = "arn:{partition}:sagemaker:{region}:{account}:mlflow-tracking-server/*"
"""An MLflow tracking server."""

MLFLOW_APP = "arn:{partition}:sagemaker:{region}:{account}:mlflow-app/*"
"""An MLflow App."""

SHELL_DOCUMENT = "arn:{partition}:ssm:{region}:{account}:document/SSM-SessionManagerRunShell"
"""The account's preferences of Session Manager, which opens terminals."""

SSH_DOCUMENT = "arn:{partition}:ssm:{region}:*:document/AWS-StartSSHSession"
"""AWS' own document for ssh through Session Manager; the ARNs of such documents name no account."""

SESSION = "arn:{partition}:ssm:{region}:{account}:session/${{aws:userid}}-*"
"""The caller's own sessions, as AWS' sample policies for Session Manager name them."""

ROLE = "arn:{partition}:iam::{account}:role/*"
"""A role."""

SCRIPTS = "arn:{partition}:s3:::sagemaker-*"
"""A bucket with lifecycle scripts: AWS' managed policy for instances allows no other names."""

ANY_RESOURCE = "*"
"""For actions that IAM cannot restrict to resources."""


@dataclass(frozen=True)
class Permission:
    """An action that a feature calls.

    Attributes:
        action: The IAM action.
        resource: Its resource: an ARN with the placeholders ``{partition}``, ``{region}`` and ``{account}``, or `ANY_RESOURCE`.
        without: What is missing without the permission.
        optional: Whether the feature is complete without it, so that a denial need not be reported.
    """

    action: str
    resource: str
    without: str
    optional: bool = False


@dataclass(frozen=True)
class Feature:
    """A user-visible feature and its permissions.

    Attributes:
        name: Its name on the command line.
        title: Its title.
        commands: Its commands, or where it is in JupyterLab.
        permissions: The permissions of its calls.
        changes: Whether it changes something, or gives people access to something that does, so that it must be granted explicitly.
    """

    name: str
    title: str
    commands: tuple[str, ...]
    permissions: tuple[Permission, ...]
    changes: bool = False

    @property
    def for_admins(self) -> bool:
        """Whether it is for admins of domains and clusters, and not needed by a domain's users."""
        return self.name.startswith("admin-")


# --------------------------------------------------------------------------------------------------
# AWS permissions of the admins' features: the part of the table in `features` about changes to
# domains and clusters.

_STORAGE_PLAN = (
    Permission("sagemaker:DescribeDomain", DOMAIN, "no plan"),
    Permission("sagemaker:ListUserProfiles", ANY_RESOURCE, "no plan"),
    Permission("sagemaker:DescribeUserProfile", PROFILE, "no plan"),
    Permission("sagemaker:ListSpaces", ANY_RESOURCE, "no plan"),
    Permission("sagemaker:DescribeSpace", SPACE, "no plan"),
    Permission("sagemaker:ListApps", ANY_RESOURCE, "no plan"),
    Permission("sagemaker:ListTags", ANY_RESOURCE, "no plan, because tags show which settings hpj made"),
    Permission("sagemaker:DescribeCluster", CLUSTER, "no --cluster; use --file-system"),
    Permission("fsx:DescribeFileSystems", ANY_RESOURCE, "no plan"),
    Permission("ec2:DescribeNetworkInterfaces", ANY_RESOURCE, "no plan"),
    Permission("ec2:DescribeSecurityGroups", ANY_RESOURCE, "no plan"),
)

_APPLYING = (
    *_STORAGE_PLAN,
    Permission("sagemaker:UpdateDomain", DOMAIN, "no defaults for new profiles"),
    Permission("sagemaker:UpdateUserProfile", PROFILE, "no changes of profiles"),
    Permission("sagemaker:UpdateSpace", SPACE, "no changes of spaces"),
    Permission("sagemaker:AddTags", ANY_RESOURCE, "no changes, because settings are tagged first"),
    Permission("sagemaker:DeleteTags", ANY_RESOURCE, "tags of removed settings stay"),
    Permission("ec2:ModifyNetworkInterfaceAttribute", INTERFACE, "Studio cannot reach the file system"),
    # IAM checks the interface and each of its new groups (service authorization reference of EC2).
    Permission("ec2:ModifyNetworkInterfaceAttribute", GROUP, "Studio cannot reach the file system"),
    Permission("ec2:CreateTags", INTERFACE, "Studio cannot reach the file system"),
    Permission("ec2:DeleteTags", INTERFACE, "tags of removed settings stay"),
    Permission("sagemaker:ListStudioLifecycleConfigs", ANY_RESOURCE, "no destroy"),
)

_VALIDATION = (
    Permission("ec2:DescribeSubnets", ANY_RESOURCE, "subnets are not checked"),
    Permission("ec2:DescribeRouteTables", ANY_RESOURCE, "whether subnets are private is not checked"),
    Permission("ec2:DescribeSecurityGroups", ANY_RESOURCE, "security groups are not checked"),
    Permission("ec2:DescribeNetworkInterfaces", ANY_RESOURCE, "routes to file systems are not checked"),
    Permission("ec2:DescribeInstanceTypes", ANY_RESOURCE, "EFA and addresses come from the package's table"),
    Permission("fsx:DescribeFileSystems", ANY_RESOURCE, "file systems are not checked"),
    Permission("s3:ListBucket", SCRIPTS, "lifecycle scripts are not checked"),
)

_FACTS = (
    Permission("sagemaker:ListClusters", ANY_RESOURCE, "clusters are not checked"),
    Permission("sagemaker:DescribeCluster", CLUSTER, "clusters are not checked"),
    Permission("sagemaker:ListClusterNodes", CLUSTER, "names of nodes and logs are not checked"),
    Permission("ssm:GetConnectionStatus", ANY_RESOURCE, "names of nodes are not checked"),
    Permission("ec2:DescribeInstanceTypes", ANY_RESOURCE, "instance types are not checked"),
    Permission("logs:DescribeLogStreams", LOGS, "names of logs are not checked"),
    Permission("cloudwatch:ListMetrics", ANY_RESOURCE, "names of metrics are not checked"),
    Permission("eks:DescribeAddon", ADDON, "labels of the add-on's metrics are not checked"),
    Permission("aps:QueryMetrics", WORKSPACE, "labels of the add-on's metrics are not checked"),
    Permission("cloudtrail:LookupEvents", ANY_RESOURCE, "events are not checked"),
)

ADMIN_FEATURES: tuple[Feature, ...] = (
    Feature(
        "admin-plan", "Plan file systems for a Studio domain", ("`hpj admin plan`", "`hpj admin status`"), _STORAGE_PLAN
    ),
    Feature(
        "admin-apply",
        "Give Studio users a file system, and remove it",
        ("`hpj admin apply`", "`hpj admin destroy`"),
        _APPLYING,
        changes=True,
    ),
    Feature(
        "admin-lifecycle",
        "Attach and remove lifecycle configurations",
        ("`hpj admin plan --lifecycle-file`", "`hpj admin apply --lifecycle-file`", "`hpj admin destroy`"),
        (
            *_APPLYING,
            Permission(
                "sagemaker:DescribeStudioLifecycleConfig",
                LIFECYCLE,
                "no plan if a lifecycle configuration exists, because its script is compared",
            ),
            Permission("sagemaker:CreateStudioLifecycleConfig", OUR_LIFECYCLE, "no scripts"),
            Permission("sagemaker:DeleteStudioLifecycleConfig", OUR_LIFECYCLE, "old scripts stay"),
        ),
        changes=True,
    ),
    Feature(
        "admin-cluster-validate",
        "Validate the configuration of a HyperPod cluster",
        ("`hpj admin validate`", "`hpj admin create-cluster`"),
        _VALIDATION,
    ),
    Feature(
        "admin-cluster-create",
        "Create HyperPod clusters",
        ("`hpj admin create-cluster`",),
        (
            Permission("sagemaker:CreateCluster", CLUSTER, "no new clusters"),
            Permission("iam:PassRole", ROLE, "no new clusters, because instances get a role"),
            Permission("sagemaker:DescribeCluster", CLUSTER, "no --wait"),
        ),
        changes=True,
    ),
    Feature("admin-facts", "Check assumptions about AWS", ("`hpj doctor --aws`",), _FACTS),
    Feature(
        "admin-page",
        "The Admin page (needs `admin-apply` too)",
        ("the Admin page in JupyterLab",),
        (
            Permission("sagemaker:ListUserProfiles", ANY_RESOURCE, "the page is not shown"),
            Permission(
                "sagemaker:UpdateUserProfile",
                PROFILE,
                "the page is not shown, because its permission is checked with a profile that does not exist",
            ),
            Permission(
                "sagemaker:ListDomains",
                ANY_RESOURCE,
                "only the domain of this space can be chosen; the page is not shown outside Studio",
            ),
            Permission("fsx:DescribeFileSystems", ANY_RESOURCE, "file systems have no names"),
            Permission("sagemaker:ListClusters", ANY_RESOURCE, "file systems of clusters are not shown"),
            Permission("sagemaker:DescribeCluster", CLUSTER, "file systems of clusters are not shown"),
        ),
        changes=True,
    ),
)

_NO_LOGIN_NODES = "login nodes must be set in the configuration"


def _session(without: str, document: str) -> tuple[Permission, ...]:
    """The calls of the AWS CLI and its plugin for a session on a node, by a document."""
    return (
        # The service authorization reference names no SageMaker cluster here; the call to Systems
        # Manager requires one.
        Permission("ssm:StartSession", CLUSTER, without),
        Permission("ssm:StartSession", document, without),
        Permission("ssmmessages:OpenDataChannel", SESSION, without),
        Permission("ssm:ResumeSession", SESSION, "a session that loses its connection ends"),
        Permission("ssm:TerminateSession", SESSION, "a session stays open until it times out"),
    )


FEATURES: tuple[Feature, ...] = (
    Feature(
        "clusters",
        "HyperPod clusters",
        ("hpj clusters", "hpj config add", "hpj doctor"),
        (
            Permission("sagemaker:ListClusters", ANY_RESOURCE, "no list of clusters"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "clusters are listed without orchestrator, instance groups and file systems",
            ),
            Permission("eks:DescribeCluster", EKS, "whether you can submit to a cluster on EKS from here is unknown"),
            Permission(
                "sagemaker:ListClusterNodes",
                CLUSTER,
                "whether the Slurm on this machine belongs to the cluster is unknown",
            ),
        ),
    ),
    Feature(
        "nodes",
        "Nodes of a HyperPod cluster",
        ("hpj nodes NAME",),
        (
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no nodes"),
            Permission("sagemaker:DescribeCluster", CLUSTER, "controllers are not recognized"),
        ),
    ),
    Feature(
        "space",
        "Owner of a Studio space",
        ("hpj doctor",),
        (Permission("sagemaker:DescribeSpace", SPACE, "the owner of a space and whether it is shared are unknown"),),
    ),
    Feature(
        "doctor",
        "The checks of hpj doctor",
        ("hpj doctor",),
        (
            Permission("sagemaker:DescribeDomain", DOMAIN, "the domain's network is not checked"),
            Permission("sagemaker:DescribeUserProfile", PROFILE, "the file systems of a profile are unknown"),
            Permission("sagemaker:DescribeSpace", SPACE, "the wanted mounts of a space are unknown"),
            Permission("sagemaker:ListClusters", ANY_RESOURCE, "clusters are not checked at AWS"),
            Permission("sagemaker:DescribeCluster", CLUSTER, "the clusters' network is not checked"),
            Permission("fsx:DescribeFileSystems", ANY_RESOURCE, "networks of file systems are not checked"),
            Permission("ec2:DescribeNetworkInterfaces", ANY_RESOURCE, "interfaces are not checked"),
            Permission("ec2:DescribeSecurityGroups", ANY_RESOURCE, "security groups are not checked"),
            Permission("ec2:DescribeSubnets", ANY_RESOURCE, "neither network ACLs nor routes are checked"),
            Permission("ec2:DescribeNetworkAcls", ANY_RESOURCE, "network ACLs are not checked"),
            Permission("ec2:DescribeRouteTables", ANY_RESOURCE, "routes are not checked"),
            Permission("ssm:GetDocument", SHELL_DOCUMENT, "the user of a terminal is unknown"),
            Permission("iam:ListRoleTags", ROLE, "the user of a terminal is unknown"),
        ),
    ),
    Feature(
        "events",
        "Events of a HyperPod cluster",
        ("hpj events NAME", "the page in JupyterLab"),
        (
            Permission("sagemaker:ListClusterEvents", CLUSTER, "no events"),
            Permission("sagemaker:DescribeClusterEvent", CLUSTER, "no details of an event"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "for a cluster without events, AWS's message is shown",
                optional=True,
            ),
        ),
    ),
    Feature(
        "logs",
        "Logs of nodes",
        ("hpj node-logs --cluster NAME", "the log viewer in JupyterLab"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no logs, because their names contain the cluster's id"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no logs of a node except those given with --stream"),
            Permission("logs:DescribeLogStreams", LOGS, "no list of logs, and no logs of replaced nodes"),
            Permission("logs:GetLogEvents", LOG, "no lines"),
        ),
    ),
    Feature(
        "metrics",
        "Metrics of clusters and nodes",
        ("hpj metrics --cluster NAME",),
        (
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "no metrics, because they are found by the cluster's id or its EKS cluster",
            ),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no metrics of one node"),
            Permission("cloudwatch:GetMetricData", ANY_RESOURCE, "no metrics"),
            Permission("cloudwatch:ListMetrics", ANY_RESOURCE, "no metrics of single nodes"),
        ),
    ),
    Feature(
        "prometheus",
        "Metrics of clusters and nodes in Amazon Managed Service for Prometheus",
        ("hpj metrics --cluster NAME", "hpj metrics RUN"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no metrics"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no metrics of a cluster, which are found by its nodes"),
            # IAM's reference names the add-on, AWS' page on Studio and EKS the cluster.
            *(
                Permission(
                    "eks:DescribeAddon",
                    resource,
                    "the workspace of the HyperPod observability add-on is unknown; only configured workspaces are used",
                )
                for resource in (ADDON, EKS)
            ),
            Permission("aps:QueryMetrics", WORKSPACE, "only metrics in CloudWatch"),
        ),
    ),
    Feature(
        "storage",
        "File systems and partitions",
        ("hpj storage",),
        (
            Permission("fsx:DescribeFileSystems", ANY_RESOURCE, "no details from FSx"),
            Permission("fsx:DescribeDataRepositoryAssociations", ANY_RESOURCE, "links to S3 are unknown"),
            Permission(
                "sagemaker:DescribeSpace", SPACE, "whether it is shared is known only from Studio's environment"
            ),
            Permission("sagemaker:DescribeUserProfile", PROFILE, "the uid is assumed to be the common one"),
            Permission(
                "sagemaker:DescribeCluster", CLUSTER, "whether configured clusters mount the file system is unknown"
            ),
        ),
    ),
    Feature(
        "governance",
        "Task governance of a HyperPod cluster",
        ("hpj quotas NAME",),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no quotas, because they are found by the cluster's ARN"),
            Permission("sagemaker:ListComputeQuotas", ANY_RESOURCE, "no quotas of teams"),
            Permission("sagemaker:DescribeComputeQuota", QUOTA, "reasons of failures are unknown"),
            Permission("sagemaker:ListClusterSchedulerConfigs", ANY_RESOURCE, "no policy"),
            Permission("sagemaker:DescribeClusterSchedulerConfig", POLICY, "no priority classes"),
        ),
    ),
    Feature(
        "mlflow",
        "MLflow servers, and runs on tracking servers",
        ("hpj mlflow servers", "hpj show RUN", "hpj mlflow link RUN"),
        (
            Permission("sagemaker:ListMlflowApps", ANY_RESOURCE, "MLflow Apps are not listed"),
            Permission("sagemaker:ListMlflowTrackingServers", ANY_RESOURCE, "tracking servers are not listed"),
            Permission("sagemaker-mlflow:GetExperimentByName", TRACKING_SERVER, "no run in MLflow is found"),
            Permission(
                "sagemaker-mlflow:SearchExperiments",
                TRACKING_SERVER,
                "no run in another experiment than the configured one is found",
            ),
            Permission("sagemaker-mlflow:SearchRuns", TRACKING_SERVER, "no run in MLflow is found"),
            Permission("sagemaker:CreatePresignedMlflowTrackingServerUrl", TRACKING_SERVER, "no link to MLflow"),
            Permission("sagemaker-mlflow:AccessUI", TRACKING_SERVER, "MLflow's page is not shown"),
        ),
    ),
    Feature(
        "mlflow-app",
        "Runs in MLflow Apps, which know one permission for reading and writing",
        ("hpj show RUN", "hpj mlflow link RUN"),
        (
            Permission("sagemaker:CallMlflowAppApi", MLFLOW_APP, "no run in MLflow is found"),
            Permission("sagemaker:CreatePresignedMlflowAppUrl", MLFLOW_APP, "no link to MLflow"),
        ),
        changes=True,
    ),
    Feature(
        "prices",
        "Prices of instance types from the AWS Price List",
        ("hpj submit --dry-run", "hpj cost"),
        (Permission("pricing:GetProducts", ANY_RESOURCE, "only prices of the configuration are used"),),
    ),
    Feature(
        "node-actions",
        "Reboot and replace nodes",
        ("hpj node reboot", "hpj node replace", "the nodes' page in JupyterLab"),
        (
            Permission("sagemaker:BatchRebootClusterNodes", CLUSTER, "no reboot"),
            Permission("sagemaker:BatchReplaceClusterNodes", CLUSTER, "no replacement"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "nodes cannot be found"),
            Permission("sagemaker:DescribeCluster", CLUSTER, "controllers are not recognized in advance"),
        ),
        changes=True,
    ),
    Feature(
        "terminal",
        "A terminal on a node",
        ("hpj terminal NODE --cluster NAME", "the nodes' page in JupyterLab"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no command, because it contains the cluster's id"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no command, because the node cannot be found"),
            *_session("the command opens no terminal", SHELL_DOCUMENT),
        ),
        changes=True,
    ),
    Feature(
        "ssh",
        "ssh to login nodes through Session Manager",
        ("hpj ssh-config NAME", "ssh with what it writes"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no Host blocks"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no Host blocks"),
            *_session("ssh does not connect", SSH_DOCUMENT),
        ),
        changes=True,
    ),
    Feature(
        "login-nodes",
        "Login nodes that AWS knows",
        ("hpj nodes NAME", "hpj ssh-config NAME"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, _NO_LOGIN_NODES),
            Permission("sagemaker:ListClusterNodes", CLUSTER, _NO_LOGIN_NODES),
        ),
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
        ("hpj nodes NAME", "hpj submit --instance-type TYPE"),
        (
            Permission("eks:DescribeCluster", EKS, 'no connection to a cluster that is configured with eks = "NAME"'),
            Permission(
                "ec2:DescribeInstanceTypes",
                ANY_RESOURCE,
                "details of instance types, such as EFA, come from the package's table",
                optional=True,
            ),
        ),
    ),
    *ADMIN_FEATURES,
)
"""All features that call AWS."""


# --------------------------------------------------------------------------------------------------
# The smallest policy that grants what features need (see `aws.features`).

__all__ = ["FEATURES", "Feature", "Permission", "choose", "policy"]


def choose(names: Sequence[str], features: Sequence[Feature] = FEATURES) -> list[Feature]:
    """Features by their names.

    Args:
        names: The names; empty: all features that change nothing and are not for admins.
        features: The features to choose from.

    Raises:
        InvalidInputError: A name is unknown.
    """
    if not names:
        return [item for item in features if not (item.changes or item.for_admins)]
    by_name = {feature.name: feature for feature in features}
    for name in names:
        if name not in by_name:
            raise InvalidInputError(
                f"unknown feature '{name[:60]}'",
                hint=nearest_hint(name, by_name) or f"there are: {', '.join(by_name)}",
                detail={"field": "features"},
            )
    return [by_name[name] for name in names]


def policy(
    features: Iterable[Feature], partition: str = "aws", region: str = "*", account: str = "*"
) -> dict[str, Any]:
    """The smallest IAM policy for features: one statement for each kind of resource.

    Args:
        features: The features.
        partition: ``aws``, ``aws-cn`` or ``aws-us-gov``.
        region: A region, or `*` for all.
        account: The account's twelve digits, or a star for all.
    """
    granted: dict[str, set[str]] = {}
    for feature in features:
        for permission in feature.permissions:
            arn = permission.resource.format(partition=partition, region=region, account=account)
            granted.setdefault(arn, set()).add(permission.action)
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": sorted(actions), "Resource": resource}
            for resource, actions in sorted(granted.items())
        ],
    }
