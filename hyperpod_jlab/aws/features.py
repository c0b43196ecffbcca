"""What of AWS each feature needs: one table, from which docs/permissions.md, ``hpj admin policy`` and the tests are made.

Who adds a call of AWS adds its action here, and how to run it to tests/aws/feature_runs.py.
"""

from __future__ import annotations

from hyperpod_jlab.aws.admin_features import ADMIN_FEATURES
from hyperpod_jlab.aws.feature import (
    ADDON,
    CLUSTER,
    DOMAIN,
    EKS,
    EVERY,
    FSX,
    FSX_TASK,
    LOG,
    LOGS,
    POLICY,
    PROFILE,
    QUOTA,
    ROLE,
    SESSION,
    SHELL_DOCUMENT,
    SPACE,
    SSH_DOCUMENT,
    WORKSPACE,
    Feature,
    Permission,
)

_NO_LOGIN = "the configuration has to name login nodes"


def _session(without: str, document: str) -> tuple[Permission, ...]:
    """What the AWS CLI and its plugin call for a session on a node, by a document."""
    return (
        # The service authorization reference names no cluster of SageMaker here; Systems Manager is asked for one.
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
        ("hpj clusters --hyperpod", "hpj config add", "hpj doctor"),
        (
            Permission("sagemaker:ListClusters", EVERY, "no list of clusters"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "clusters are listed without orchestrator, instance groups and file systems",
            ),
            Permission(
                "eks:DescribeCluster",
                EKS,
                "it is not known whether one can submit to a cluster on EKS from here",
            ),
            Permission(
                "sagemaker:ListClusterNodes",
                CLUSTER,
                "it is not known whether the Slurm on this machine is the cluster's",
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
        "doctor",
        "The checks of hpj doctor",
        ("hpj doctor",),
        (
            Permission("sagemaker:DescribeDomain", DOMAIN, "the domain's network is not checked"),
            Permission(
                "sagemaker:DescribeUserProfile",
                PROFILE,
                "it is not known which file systems a profile may mount",
            ),
            Permission(
                "sagemaker:DescribeSpace", SPACE, "it is not known what a space is to mount"
            ),
            Permission("sagemaker:ListClusters", EVERY, "no check of clusters at AWS"),
            Permission(
                "sagemaker:DescribeCluster", CLUSTER, "the clusters' network is not checked"
            ),
            Permission("fsx:DescribeFileSystems", EVERY, "file systems' networks are not checked"),
            Permission("ec2:DescribeNetworkInterfaces", EVERY, "interfaces are not checked"),
            Permission("ec2:DescribeSecurityGroups", EVERY, "security groups are not checked"),
            Permission("ec2:DescribeSubnets", EVERY, "neither network ACLs nor routes are checked"),
            Permission("ec2:DescribeNetworkAcls", EVERY, "network ACLs are not checked"),
            Permission("ec2:DescribeRouteTables", EVERY, "routes are not checked"),
            Permission("ssm:GetDocument", SHELL_DOCUMENT, "it is not known who a terminal is"),
            Permission("iam:ListRoleTags", ROLE, "it is not known who a terminal is"),
        ),
    ),
    Feature(
        "events",
        "Events of a HyperPod cluster",
        ("hpj events --hyperpod NAME", "the page in JupyterLab"),
        (
            Permission("sagemaker:ListClusterEvents", CLUSTER, "no events"),
            Permission("sagemaker:DescribeClusterEvent", CLUSTER, "no details of an event"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "no journal; of a cluster that keeps no events it is said in AWS' words",
                optional=True,
            ),
        ),
    ),
    Feature(
        "logs",
        "Logs of nodes",
        ("hpj node-logs --hyperpod NAME", "the log viewer in JupyterLab"),
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
        "prometheus",
        "Metrics of clusters, nodes and runs in Amazon Managed Service for Prometheus",
        ("hpj metrics --hyperpod NAME", "hpj metrics RUN"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no metrics"),
            Permission(
                "sagemaker:ListClusterNodes",
                CLUSTER,
                "only those of runs: which series are the cluster's is known by its nodes",
            ),
            # IAM's reference names the add-on, AWS' page on Studio and EKS the cluster.
            *(
                Permission(
                    "eks:DescribeAddon",
                    resource,
                    "the workspace of HyperPod's observability add-on is not known, only those that the configuration names",
                )
                for resource in (ADDON, EKS)
            ),
            Permission("aps:QueryMetrics", WORKSPACE, "only what CloudWatch has"),
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
        "governance",
        "Task governance of a HyperPod cluster",
        ("hpj quotas --hyperpod NAME",),
        (
            Permission(
                "sagemaker:DescribeCluster", CLUSTER, "nothing: quotas are found by its ARN"
            ),
            Permission("sagemaker:ListComputeQuotas", EVERY, "no quotas of teams"),
            Permission("sagemaker:DescribeComputeQuota", QUOTA, "it is not known why one failed"),
            Permission("sagemaker:ListClusterSchedulerConfigs", EVERY, "no policy"),
            Permission("sagemaker:DescribeClusterSchedulerConfig", POLICY, "no priority classes"),
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
        ("hpj node reboot", "hpj node replace", "the nodes' page in JupyterLab"),
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
        ("hpj terminal --hyperpod NAME", "the nodes' page in JupyterLab"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no command: it has the cluster's id"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no command: the node is not found"),
            *_session("the command opens no terminal", SHELL_DOCUMENT),
        ),
        changes=True,
    ),
    Feature(
        "ssh",
        "ssh to login nodes through Session Manager",
        ("hpj ssh-config --hyperpod NAME", "ssh with what it writes"),
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
        ("hpj nodes --cluster NAME", "hpj ssh-config --hyperpod NAME"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, _NO_LOGIN),
            Permission("sagemaker:ListClusterNodes", CLUSTER, _NO_LOGIN),
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
        ("hpj nodes --cluster NAME", "hpj submit --instance-type TYPE"),
        (
            Permission(
                "eks:DescribeCluster",
                EKS,
                'no way to a cluster that the configuration names with eks = "NAME"',
            ),
            Permission(
                "ec2:DescribeInstanceTypes",
                EVERY,
                "what an instance type has, EFA above all, is taken from the package's table",
                optional=True,
            ),
        ),
    ),
    *ADMIN_FEATURES,
)
"""All features that call AWS."""
